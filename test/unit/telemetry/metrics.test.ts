import { describe, expect, it } from 'vitest';
import { createMetrics, type GaugeSources } from '../../../src/telemetry/metrics.ts';

const sources: GaugeSources = {
  queuedInputs: () => 3,
  queuedTokens: () => 40,
  queueSeconds: () => 0.5,
  runningInputs: () => 2,
  executorsReady: () => 1,
  isReady: () => true,
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
      if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    }
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
