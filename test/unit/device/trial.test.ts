import { describe, expect, it } from 'vitest';
import { tryDevice } from '../../../src/device/trial.ts';
import { createFakeExecutors, fakeRows, type FakeScript } from '../../support/fake-channel.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { batchOf, isProof, limits, proofBatch } from './device.ts';

const webgpu = { name: 'webgpu', deviceIndex: 0 } as const;

async function tryWith(script: FakeScript) {
  const fake = createFakeExecutors({ executionProvider: 'webgpu', ...script });
  const clock = createFakeClock();
  const outcome = tryDevice({
    launch: fake.launch,
    clock,
    limits,
    models: [],
    timedHeads: () => [],
    threads: 1,
    provider: webgpu,
    proofRuns: [{ batch: proofBatch, judge: (rows) => (rows[0]?.values[0] === 99 ? null : 'it is too far off') }],
    timedBatch: batchOf(1, 2),
  });
  await clock.advance(60_000);
  return { outcome: await outcome, fake };
}

describe('a trial', () => {
  it('loads, proves and times the models, and ends its executor', async () => {
    const { outcome, fake } = await tryWith({});
    expect(outcome).toEqual({ isProved: true, runMs: 1 });
    expect(fake.batches[0]).toBe(proofBatch);
    expect(fake.channels.map((channel) => channel.isKilled())).toEqual([true]);
  });

  it.each<[string, FakeScript, string]>([
    ['that cannot load', { load: () => ({ failed: 'no adapter' }) }, 'no adapter'],
    ['that dies', { load: () => 'exit' }, 'exit code 1'],
    ['that hangs', { load: () => 'hang' }, 'no answer to "load"'],
    ['whose proof is refused', { run: (batch) => (isProof(batch) ? [wrong] : fakeRows(batch)) }, 'it is too far off'],
    ['whose timed run fails', { run: (batch) => (isProof(batch) ? fakeRows(batch) : { failed: 'x' }) }, 'x'],
    [
      'that leaves computing to the CPU',
      { placements: [{ modelId: 'm', foreignNodes: ['a (MatMul)'] }] },
      'webgpu cannot compute all of m: a (MatMul)',
    ],
  ])('of a device %s says why', async (_, script, reason) => {
    const { outcome, fake } = await tryWith(script);
    expect(outcome).toMatchObject({ isProved: false, reason: expect.stringContaining(reason) });
    expect(fake.channels.every((channel) => channel.isKilled())).toBe(true);
  });
});

const wrong = { values: Float32Array.of(1, 1), indices: null };
