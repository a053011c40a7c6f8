import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cudaCandidate } from '../../../../src/device/inventory/nvidia.ts';
import { probeDevice } from '../../../../src/device/inventory/probe-device.ts';

const candidate = cudaCandidate(
  { name: 'GPU', uuid: null, busId: null, memoryBytes: null, driverVersion: null, computeCapability: null },
  2,
);
const good = "{ type: 'probed', relativeError: 0, rows: 16, runMs: 1, cpuRunMs: 2, hasFp16: false, libraries: [] }";
const onQuestion = (script: string) => `process.on('message', (question) => { ${script} });`;

describe('a probe process', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'trivec-probe-'));
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  let scripts = 0;
  const probe = async (script: string, timeoutMs = 10_000) => {
    const entryPath = join(directory, `probe-${++scripts}.cjs`);
    writeFileSync(entryPath, script);
    const environment = { PROBE_SEES: 'this' };
    return (await probeDevice(candidate, { entryPath, threads: 3, environment, timeoutMs })).verdict;
  };
  const reasonOf = async (script: string, timeoutMs?: number): Promise<string> => {
    const verdict = await probe(script, timeoutMs);
    return verdict.isUsable ? 'usable' : verdict.reason;
  };

  it('that answers well makes the device usable, though it would crash at its end', async () => {
    expect(await reasonOf(onQuestion(`process.on('exit', () => process.abort()); process.send(${good})`))).toBe(
      'usable',
    );
  });

  it('is asked about that device, and sees the environment that it is given and no other', async () => {
    const saw = join(directory, 'saw.json');
    const keys = 'Object.keys(process.env).filter((key) => !/^(MALLOC|VK|NODE_CHANNEL|GLIBC)_/.test(key))';
    const write = `require('node:fs').writeFileSync('${saw}', JSON.stringify([question, ${keys}, process.argv[2]]))`;
    await probe(onQuestion(`${write}; process.send(${good})`));
    expect(JSON.parse(readFileSync(saw, 'utf8'))).toEqual([
      { type: 'probe', provider: 'cuda', deviceIndex: 2, threads: 3 },
      ['PROBE_SEES'],
      String(process.pid),
    ]);
  });

  it.each([
    ['crashes', onQuestion("process.kill(process.pid, 'SIGSEGV')"), /ended by SIGSEGV/],
    ['aborts', onQuestion('process.abort()'), /ended by SIGABRT/],
    ['exits', onQuestion('process.exit(7)'), /ended with exit code 7/],
    ['throws', "throw new Error('x')", /ended with exit code 1/],
    ['sends garbage', onQuestion("process.send(['no', 'sense'])"), /makes no sense/],
    ['does not exist as a program', 'syntax error', /ended with exit code 1/],
    [
      'reports an error',
      onQuestion("process.send({ type: 'failed', reason: 'CUDA failure 2: out of memory' })"),
      /^its memory is taken/,
    ],
  ])('that %s makes it unusable, with the reason', async (_, script, reason) => {
    expect(await reasonOf(script)).toMatch(reason);
  });

  it('that dies after the loader complained is explained by the complaint', async () => {
    const complaint = 'libcublasLt.so.13: cannot open shared object file: No such file or directory';
    const script = onQuestion(`require('node:fs').writeSync(2, '${complaint}\\n'); process.abort()`);
    expect(await reasonOf(script)).toContain('libcublasLt.so.13 not found: run `trivec devices install-cuda`');
  });

  it('that logs more than is kept is still understood by what it said last', async () => {
    const script = onQuestion(
      "const { writeSync } = require('node:fs'); for (let n = 0; n < 600; n++) writeSync(2, 'y'.repeat(1000)); " +
        "writeSync(2, '\\nlibcurand.so.10: cannot open shared object file\\n'); process.send({ type: 'failed', reason: '?' })",
    );
    expect(await reasonOf(script)).toContain('libcurand.so.10 not found');
  });

  it('that hangs, even without an ear for signals, is killed', async () => {
    const pidFile = join(directory, 'pid');
    const script =
      `process.on('SIGTERM', () => {}); require('node:fs').writeFileSync('${pidFile}', String(process.pid)); ` +
      onQuestion('for (;;);');
    expect(await reasonOf(script, 1500)).toContain('its probe hung for 1500 ms and was killed');
    const pid = Number(readFileSync(pidFile, 'utf8'));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
