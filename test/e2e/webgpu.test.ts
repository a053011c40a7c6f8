import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { goldenFolder } from '../unit/model/golden-models.ts';
import { executorPids } from '../support/executors.ts';
import { startServed, type Served } from '../support/served.ts';
import { softwareAdapter, webgpuRequirement, webgpuTolerance } from '../support/webgpu.ts';

const webgpu = webgpuRequirement();
/** A software adapter that shares two cores with other tests is very slow to compile its shaders. @unit ms */
const startTimeoutMs = 150_000;
const slowFlags = ['--load-timeout-ms', '120000', '--deadline-ms', '120000', '--run-timeout-ms', '60000'];
const common = ['--precision', 'fp32', '--executors', '1', ...slowFlags];
const others = ['--sparse-model', goldenFolder('bert-splade'), '--rerank-model', goldenFolder('cross-encoder-1')];
const bertDense = ['--embed-model', goldenFolder('bert-dense')];
const models = [...common, ...others, ...bertDense, '--multi-model', goldenFolder('colbert-pylate')];
const texts = ['heat moves through a plate', 'the', 'a wing in a slow stream of air gives lift and drag at once'];
const [query = '', ...passages] = texts;

interface VendorInfo {
  readonly devices: readonly DeviceInfo[];
  readonly unusedDevices: readonly { readonly id: string; readonly reason: string }[];
}
interface DeviceInfo {
  readonly id: string;
  readonly executionProvider: string;
  readonly state: string;
  readonly serves: readonly string[];
}
const vendorInfo = async (server: Served): Promise<VendorInfo> =>
  (await server.call<{ 'x-trivec': VendorInfo }>('info'))['x-trivec'];
const devicesOf = async (server: Served) => (await vendorInfo(server)).devices;

/** Driver of the software adapter among the files that a process has mapped. */
const hasMapped = (pid: number, file: string) => readFileSync(`/proc/${pid}/maps`, 'utf8').includes(file);

const started: Served[] = [];
async function start(flags: readonly string[], served: readonly string[] = models): Promise<Served> {
  const server = await startServed({ flags: [...served, ...flags], environment: softwareAdapter, startTimeoutMs });
  started.push(server);
  return server;
}
afterAll(() => Promise.all(started.map((server) => server.end())));

interface Answers {
  readonly dense: readonly number[];
  readonly sparse: readonly { readonly indices: readonly number[]; readonly values: readonly number[] }[];
  readonly rows: readonly number[];
  readonly scores: readonly number[];
  readonly maxSim: readonly number[];
  readonly usedDevices: readonly string[];
}

async function askAll(server: Served): Promise<Answers> {
  const usedDevices: string[] = [];
  const ask = async <Result>(method: string, params: object): Promise<Result> => {
    const result = await server.call<Result & { usage: { device: string } }>(method, params);
    usedDevices.push(result.usage.device);
    return result;
  };
  const dense = await ask<{ vectors: number[][] }>('embed', { inputs: texts });
  const { sparse } = await ask<Pick<Answers, 'sparse'>>('embed/sparse', { texts });
  const multi = await ask<{ matrices: number[][][] }>('embed/multi', { inputs: texts });
  const { scores } = await ask<{ scores: number[] }>('rerank', { query, passages });
  const colbert = await ask<{ scores: number[] }>('rerank', { query, passages, method: 'colbert' });
  return {
    dense: dense.vectors.flat(),
    sparse,
    rows: multi.matrices.flat(2),
    scores,
    maxSim: colbert.scores,
    usedDevices,
  };
}

function expectClose(left: readonly number[], right: readonly number[]): void {
  expect(left).toHaveLength(right.length);
  for (const [at, value] of left.entries()) expect(Math.abs(value - (right[at] ?? NaN))).toBeLessThan(webgpuTolerance);
}

describe.skipIf(webgpu.skip)(webgpu.title('a server on WebGPU'), { timeout: 300_000 }, () => {
  let onCpu: Answers;
  let server: Served;
  beforeAll(async () => {
    const cpu = await start(['--device', 'cpu']);
    onCpu = await askAll(cpu);
    server = await start(['--device', 'webgpu']);
  }, 300_000);

  it('gives the values of the CPU, for every method, and says that they come from there', async () => {
    const onGpu = await askAll(server);
    expect(new Set(onGpu.usedDevices)).toEqual(new Set(['webgpu:0']));
    expect(new Set(onCpu.usedDevices)).toEqual(new Set(['cpu:0']));
    for (const head of ['dense', 'rows', 'scores', 'maxSim'] as const) expectClose(onGpu[head], onCpu[head]);
    for (const [at, { indices, values }] of onGpu.sparse.entries()) {
      expect(indices).toEqual(onCpu.sparse[at]?.indices);
      expectClose(values, onCpu.sparse[at]?.values ?? []);
    }
  });

  it('says of itself what the system says of its processes', async () => {
    const [device, ...others] = await devicesOf(server);
    expect(others).toEqual([]);
    expect(device).toMatchObject({ id: 'webgpu:0', executionProvider: 'webgpu', state: 'ready' });
    const [pid = 0, ...more] = executorPids(server.pid);
    expect(more).toEqual([]);
    expect(hasMapped(pid, 'libvk_swiftshader')).toBe(true);
    expect(hasMapped(server.pid, 'libonnxruntime')).toBe(false);
  });

  it('gives 20 calls at once what it gives them one by one, all from the same process', async () => {
    const pids = executorPids(server.pid);
    const ask = async (index: number) => {
      const inputs = [`${texts[index % texts.length] ?? ''} ${'warm '.repeat(index % 4)}`.trim()];
      return (await server.call<{ vectors: number[][] }>('embed', { inputs })).vectors.flat();
    };
    const alone: number[][] = [];
    for (let index = 0; index < 20; index += 1) alone.push(await ask(index));
    const together = await Promise.all(alone.map((_, index) => ask(index)));
    for (const [index, vector] of together.entries()) expectClose(vector, alone[index] ?? []);
    expect(executorPids(server.pid)).toEqual(pids);
  });

  it('answers again, with the same values, after its executor was killed', async () => {
    const before = await askAll(server);
    const [pid = 0] = executorPids(server.pid);
    process.kill(pid, 'SIGKILL');
    expect(await askAll(server)).toEqual(before);
    expect(executorPids(server.pid)).not.toContain(pid);
  });
});

describe.skipIf(webgpu.skip)(webgpu.title('a task with a device of its own'), { timeout: 300_000 }, () => {
  it('runs there, and the others where they were, one model on both if need be', async () => {
    const devices = ['--device', 'cpu', '--multi-device', 'webgpu'];
    const server = await start(devices, [
      ...common,
      ...others,
      ...bertDense,
      '--multi-model',
      goldenFolder('bert-dense'),
    ]);
    expect(
      (await devicesOf(server)).map(({ id, executionProvider, serves }) => [id, executionProvider, serves]),
    ).toEqual([
      ['cpu:0', 'cpu', ['embed', 'sparseEmbed', 'rerank']],
      ['webgpu:0', 'webgpu', ['multiVector', 'rerank']],
    ]);
    const { usedDevices } = await askAll(server);
    expect(usedDevices).toEqual(['cpu:0', 'cpu:0', 'webgpu:0', 'cpu:0', 'webgpu:0']);
  });
});

describe.skipIf(webgpu.skip)(webgpu.title('a machine whose only adapter is software'), { timeout: 60_000 }, () => {
  it('serves on the CPU where nobody names the adapter', async () => {
    const server = await start([]);
    const { devices, unusedDevices } = await vendorInfo(server);
    expect(devices.map(({ id }) => id)).toEqual(['cpu:0']);
    expect(unusedDevices).toContainEqual({ id: 'webgpu:0', reason: expect.stringContaining('is software') });
    const [pid = 0] = executorPids(server.pid);
    expect(hasMapped(pid, 'libvk_swiftshader')).toBe(false);
  });
});

describe('a device that cannot be used', { timeout: 60_000 }, () => {
  it.each([
    ['--device', 'gpu0', '"gpu0" is no device'],
    ['--device', 'cuda', 'cuda cannot be used: '],
    ['--rerank-device', 'cuda:7', 'rerank-device: '],
    ['--device', 'cpu,cuda', 'mixes cpu and cuda'],
  ])('%s %s ends the start with exit code 2 and the reason', async (flag, value, reason) => {
    const failed = await startServed({ flags: [...models, flag, value] }).catch((error: unknown) => error);
    expect(String(failed)).toMatch(/exit code 2/u);
    expect(String(failed)).toContain(reason);
  });
});
