import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { BulkFailure } from '../../../src/bulk/row.ts';
import { telling } from '../../../src/cli/failures.ts';
import { RcpError } from '../../../src/client/index.ts';
import { ConfigurationError, ServiceError } from '../../../src/errors.ts';

afterEach(() => {
  vi.restoreAllMocks();
  process.exitCode = undefined;
});

async function told(error: Error): Promise<{ stderr: string; exitCode: unknown; thrown: unknown }> {
  let stderr = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += String(text);
    return true;
  });
  const thrown: unknown = await telling(() => Promise.reject(error)).catch((caught: unknown) => caught);
  return { stderr, exitCode: process.exitCode, thrown };
}

const ofSystem = Object.assign(new Error('EACCES: permission denied, scandir x'), {
  code: 'EACCES',
  syscall: 'scandir',
});

describe('a failure of a command', () => {
  it.each([
    new BulkFailure('no'),
    new ServiceError('unavailable', 'no'),
    new ServiceError('invalidParams', 'no', { field: 'passages[3]' }),
    new RcpError(-32010, 'no'),
    ofSystem,
  ])('that a person can act on is one line, with code 1: %s', async (error) => {
    expect(await told(error)).toEqual({ stderr: `trivec: ${error.message}\n`, exitCode: 1, thrown: undefined });
  });

  it.each([
    new ServiceError('invalidParams', 'no', { field: 'query' }),
    new ServiceError('unsupportedOption', 'no', { field: 'model' }),
    new RcpError(-32005, 'no', { data: { field: 'x-trivec.dimensions' } }),
    new RcpError(-32012, 'no'),
  ])('that its flags are to blame for is a fault of what was configured: %s', async (error) => {
    const { thrown, stderr } = await told(error);
    expect(thrown).toBeInstanceOf(ConfigurationError);
    expect(stderr).toBe('');
  });

  it('that is a bug is thrown as it is', async () => {
    const bug = new TypeError('x is not a function');
    expect((await told(bug)).thrown).toBe(bug);
  });
});

describe('what is printed', () => {
  const module = fileURLToPath(new URL('../../../src/cli/stdout.ts', import.meta.url));
  const failures = fileURLToPath(new URL('../../../src/cli/failures.ts', import.meta.url));
  const script = `const { print } = await import('${module}'); const { telling } = await import('${failures}');
await telling(() => print('x'.repeat(200000)));`;
  const print = (target: string) =>
    spawnSync('bash', ['-c', `"$0" --import tsx --input-type=module -e "$1" ${target}`, process.execPath, script], {
      encoding: 'utf8',
    });

  it.skipIf(!existsSync('/dev/full'))('is whole, or the command says why not and ends with code 1', () => {
    const { status, stderr } = print('> /dev/full');
    expect([status, stderr]).toEqual([1, 'trivec: ENOSPC: no space left on device, write\n']);
  });

  it('may be read in part, by who has seen enough', () => {
    const { stderr, stdout } = print('| head -c 3; exit "${PIPESTATUS[0]}"');
    expect([stdout, stderr]).toEqual(['xxx', '']);
  });
});
