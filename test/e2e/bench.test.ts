import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { processTree } from '../../src/bench/processes.ts';
import { isAlive, until } from '../support/executors.ts';
import { startServed, type Served } from '../support/served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
// Run elsewhere: what is bundled is found from the program, not from where it is called.
const options = { cwd: tmpdir(), env: { ...process.env, TRIVEC_CACHE_DIR: `${root}.cache/served` }, timeout: 100_000 };
const bench = (...words: string[]) => run(process.execPath, [`${root}dist/main.js`, 'bench', ...words], options);

let served: Served;
let folder: string;
beforeAll(async () => {
  served = await startServed();
  folder = mkdtempSync(join(tmpdir(), 'bench-'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await served.end();
});

describe('trivec bench', () => {
  it('measures a server that runs, with what it counts itself and the time of its process', async () => {
    const json = join(folder, 'one.json');
    const flags = ['--documents', '12', '--warm-up', '2', '--rounds', '2', '--callers', '3', '--json', json];
    const { stdout } = await bench(served.baseUrl, '--pid', String(served.pid), ...flags);
    expect(stdout).toContain(`A: rcp, ${served.baseUrl}\n`);
    expect(stdout).toMatch(/^A +documents +[\d.]+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +0 +0 +0 +[\d.]+ +[\d.]+$/mu);
    const report = JSON.parse(readFileSync(json, 'utf8'));
    expect(report).toMatchObject({
      settings: { documents: 12, rounds: 2, callers: 3 },
      texts: { documents: 12 },
      summary: [{ side: 'A', loads: [{ load: 'documents', answered: 24, failures: {}, refused: 0, dropped: 0 }] }],
    });
    expect(report.rounds).toHaveLength(2);
    const [{ cpuSeconds, work }] = report.summary[0].loads;
    expect(cpuSeconds).toBeGreaterThan(0);
    expect(work.tokensPerRun).toBeGreaterThan(0);
  });

  it('compares it with a server that it starts, in Markdown', { timeout: 120_000 }, async () => {
    const json = join(folder, 'two.json');
    const flags = ['--documents', '6', '--warm-up', '1', '--rounds', '1', '--mode', 'list', '--json', json];
    const { stdout } = await bench(`${served.baseUrl}/rcp`, '--compare-serve', '--device cpu', '--markdown', ...flags);
    expect(stdout).toContain('- B: `rcp, started here: serve --device cpu`');
    expect(stdout).toMatch(/^\| documents, texts\/s: A \/ B \| [\d.]+ \| [\d.]+ \| [\d.]+ \| higher \| 1 \|$/mu);
    const { ratios, rounds } = JSON.parse(readFileSync(json, 'utf8'));
    expect(rounds[0].map(({ side }: { side: string }) => side)).toEqual(['A', 'B']);
    expect(ratios.map(({ name }: { name: string }) => name)).toContain('documents, p50: A / B');
  });

  /** A benchmark that has started its server, and the processes of both. */
  const startLong = async () => {
    const words = [`${root}dist/main.js`, 'bench', '--warm-up', '0', '--duration-s', '60'];
    const child = spawn(process.execPath, words, { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    const closed = once(child, 'close');
    await once(child.stderr, 'data');
    const started = processTree(child.pid ?? 0);
    // The benchmark, its server and an executor at least.
    expect(started.length).toBeGreaterThan(2);
    return { child, closed, started };
  };

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'ends the server that it started at %s',
    { timeout: 60_000 },
    async (signal) => {
      const { child, closed, started } = await startLong();
      child.kill(signal);
      expect(await closed).toEqual([1, null]);
      expect(started.slice(0, 2).filter(isAlive)).toEqual([]);
      await until('its executors are gone', () => !started.some(isAlive), 10_000);
    },
  );

  it('leaves no process behind when it is killed', { timeout: 60_000 }, async () => {
    const { child, closed, started } = await startLong();
    child.kill('SIGKILL');
    // Its stderr is its own: the server has another one.
    expect(await closed).toEqual([null, 'SIGKILL']);
    await until('server and executors are gone', () => !started.some(isAlive), 20_000);
  });

  it('refuses bad flags with exit code 2 and names them all', async () => {
    const failed = await bench('--callers', 'x', '--rounds', '0', '--zzz', '--', '--device', 'cpu').catch(
      (error: unknown) => error,
    );
    expect(failed).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/unknown argument --zzz.*\n.*--callers.*\n.*--rounds/u),
    });
  });

  it('says with exit code 1 where nobody answers', async () => {
    const failed = await bench('http://127.0.0.1:1').catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('ECONNREFUSED') });
  });
});
