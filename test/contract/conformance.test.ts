import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { watch, type WatchedProcess } from '../support/harness/watch.ts';
import { requirement } from '../support/require.ts';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** A checkout of the protocol's repository, whose suite cannot be part of this one. */
const repository = process.env['RCP_REPOSITORY'] ?? fileURLToPath(new URL('../../.cache/rcp', import.meta.url));
const suite = join(repository, 'conformance/check.py');
const checkout = requirement(
  'rcp',
  existsSync(suite),
  `no checkout of github.com/1ay1/rcp in ${repository}; name one in RCP_REPOSITORY`,
);

interface Report {
  readonly exitCode: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly certifiedLevel: string | null;
  readonly declaredLevel: string | null;
  readonly declarationHonest: boolean;
  readonly checks: readonly { readonly name: string; readonly status: string }[];
}

/** Runs the suite and reads the report at the end of its output. */
async function runSuite(...args: string[]): Promise<Report> {
  const run = promisify(execFile)('python3', [suite, '--json', ...args], { encoding: 'utf8' });
  const { stdout, code } = await run.then(
    (done) => ({ ...done, code: 0 }),
    (error: unknown) => error as { stdout: string; code: number },
  );
  return { ...(JSON.parse(stdout.slice(stdout.indexOf('\n{'))) as Report), exitCode: code };
}

const failures = (report: Report) => report.checks.filter(({ status }) => status === 'fail').map(({ name }) => name);
const good = {
  exitCode: 0,
  passed: 18,
  failed: 0,
  skipped: 5,
  certifiedLevel: 'L2',
  declaredLevel: 'L0',
  declarationHonest: true,
};

describe.skipIf(checkout.skip)(
  checkout.title('the conformance suite of the protocol, against the models of the package'),
  () => {
    let server: WatchedProcess | null = null;
    afterEach(async () => {
      server?.child.kill('SIGTERM');
      await server?.ended;
      server = null;
    });
    const startHttp = async (...flags: string[]): Promise<string> => {
      server = watch(spawn(process.execPath, [main, 'serve', '--port', '0', ...flags], { stdio: 'pipe' }));
      return /listening on (\S+)/.exec(await server.until(/listening on \S+/))?.[1] ?? '';
    };

    it('stdio: every check that applies passes', async () => {
      expect(await runSuite('--', process.execPath, main, 'serve', '--stdio')).toMatchObject(good);
    });

    it('HTTP with a single session: every check that applies passes, twice in a row', async () => {
      const url = await startHttp('--http-session', 'single');
      for (let runs = 0; runs < 2; runs++) expect(await runSuite('--http', url)).toMatchObject(good);
    });

    it('HTTP without sessions: exactly the three checks fail that no stateless server can pass', async () => {
      const report = await runSuite('--http', await startHttp());
      expect(failures(report)).toEqual([
        'pre-initialize call rejected with -32001',
        'a failed handshake leaves the session uninitialized',
        'repeated initialize after success rejected with -32600',
      ]);
      expect(report).toMatchObject({ exitCode: 1, passed: 15, failed: 3, skipped: 5 });
    });
  },
);
