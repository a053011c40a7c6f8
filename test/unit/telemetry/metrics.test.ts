import { describe, expect, it } from 'vitest';
import { createMetrics, type GaugeSources } from '../../../src/telemetry/metrics.ts';

const sources: GaugeSources = {
  queuedInputs: () => 3,
  queuedTokens: () => 40,
  queueSeconds: () => 0.5,
  runningInputs: () => 2,
  executorsReady: () => 1,
  resultCacheBytes: () => 0,
  isReady: () => true,
  executors: () => [
    { deviceId: 'cpu:0', executorId: 'cpu:0/0', state: 'busy', residentBytes: 5_000_000 },
    { deviceId: 'cpu:0', executorId: 'cpu:0/1', state: 'dead', residentBytes: null },
  ],
  deviceMemory: () => Promise.resolve([{ deviceId: 'cuda:0', usedBytes: 3_000, totalBytes: 9_000 }]),
  residentBytes: () => 70_000_000,
  build: { version: '1.2.3', node: 'v20.20.2', onnxruntime: '1.30.0' },
};

async function namesOf(metrics: ReturnType<typeof createMetrics>): Promise<{ name: string; type: string }[]> {
  const text = await metrics.registry.metrics();
  return [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => ({ name, type }));
}

describe('the metrics', () => {
  it('are declared once each, under the prefix, with help', async () => {
    const metrics = createMetrics();
    metrics.watch(sources);
    const names = (await namesOf(metrics)).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThanOrEqual(15);
    for (const name of names) expect(name).toMatch(/^trivec_[a-z_]+$/);
    const text = await metrics.registry.metrics();
    for (const name of names) expect(text).toMatch(new RegExp(`^# HELP ${name} \\S`, 'm'));
  });

  it('are in base units: counters end in _total, nothing is in milliseconds', async () => {
    const metrics = createMetrics();
    metrics.watch(sources);
    for (const { name, type } of await namesOf(metrics)) {
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(name).not.toMatch(/_(ms|milliseconds|kb|mb)(_|$)/);
      if (type === 'histogram') expect(name).toMatch(/_(seconds|inputs)$/);
    }
  });

  it('show the memory of the devices that tell it, and forget those that tell it no more', async () => {
    const metrics = createMetrics();
    let devices = [{ deviceId: 'cuda:0', usedBytes: 3_000, totalBytes: 9_000 }];
    metrics.watch({ ...sources, deviceMemory: () => Promise.resolve(devices) });
    const text = await metrics.registry.metrics();
    expect(text).toContain('trivec_device_memory_used_bytes{device="cuda:0"} 3000');
    expect(text).toContain('trivec_device_memory_bytes{device="cuda:0"} 9000');
    devices = [];
    expect(await metrics.registry.metrics()).not.toContain('trivec_device_memory_bytes{');
  });

  it('read the gauges when they are scraped', async () => {
    const metrics = createMetrics();
    let queued = 1;
    let isReady = false;
    metrics.watch({ ...sources, queuedInputs: () => queued, isReady: () => isReady });
    expect(await metrics.registry.metrics()).toMatch(/^trivec_queued_inputs 1$/m);
    expect(await metrics.registry.metrics()).toMatch(/^trivec_ready 0$/m);
    queued = 7;
    isReady = true;
    expect(await metrics.registry.metrics()).toMatch(/^trivec_queued_inputs 7$/m);
    expect(await metrics.registry.metrics()).toMatch(/^trivec_ready 1$/m);
  });

  it('show each executor by its state, states without one as 0, and memory only of those that have said it', async () => {
    const metrics = createMetrics();
    metrics.watch(sources);
    const text = await metrics.registry.metrics();
    expect(text).toContain('trivec_executors{device="cpu:0",state="busy"} 1');
    expect(text).toContain('trivec_executors{device="cpu:0",state="dead"} 1');
    expect(text).toContain('trivec_executors{device="cpu:0",state="ready"} 0');
    expect(text).toContain('trivec_executor_resident_bytes{device="cpu:0",executor="cpu:0/0"} 5000000');
    expect(text).not.toContain('executor="cpu:0/1"');
    expect(text).toContain('trivec_build_info{version="1.2.3",node="v20.20.2",onnxruntime="1.30.0"} 1');
  });

  it('forget the memory of an executor that has died', async () => {
    const metrics = createMetrics();
    let residentBytes: number | null = 1;
    const executor = { deviceId: 'cpu:0', executorId: 'cpu:0/0', state: 'ready' } as const;
    metrics.watch({ ...sources, executors: () => [{ ...executor, residentBytes }] });
    expect(await metrics.registry.metrics()).toContain('executor="cpu:0/0"} 1');
    residentBytes = null;
    expect(await metrics.registry.metrics()).not.toContain('executor="cpu:0/0"');
  });

  it('of two servers in one process are apart', async () => {
    const [a, b] = [createMetrics(), createMetrics()];
    a.runs.inc({ device: 'cpu:0' });
    expect(await a.registry.metrics()).toContain('trivec_runs_total{device="cpu:0"} 1');
    expect(await b.registry.metrics()).not.toContain('device="cpu:0"');
  });

  it('have a bucket for a call at its deadline', async () => {
    const metrics = createMetrics();
    metrics.callSeconds.observe({ method: 'embed' }, 25);
    expect(await metrics.registry.metrics()).toContain('trivec_call_seconds_bucket{le="25",method="embed"} 1');
  });
});
