import { describe, expect, it } from 'vitest';
import { createDeviceCosts } from '../../../src/device/costs.ts';
import type { CostKey, CostStore } from '../../../src/device/cost-store.ts';
import type { RunCost } from '../../../src/device/cost-model.ts';
import { model as plainModel } from './device.ts';

const cost: RunCost = { fixedMs: 1, tokenMs: 2, squaredTokenMs: 0 };
const timings = [8, 64, 256].map((tokens) => ({ texts: 1, tokens, ms: 1 + 2 * tokens }));

/** A store in memory that counts how often it is asked. */
function memoryStore(): CostStore & { readonly asked: CostKey[] } {
  const costs = new Map<string, RunCost>();
  const asked: CostKey[] = [];
  return {
    asked,
    get(key) {
      asked.push(key);
      return costs.get(JSON.stringify(key)) ?? null;
    },
    put: (key, value) => costs.set(JSON.stringify(key), value),
  };
}

const model = { ...plainModel, heads: ['dense', 'rows', 'maxSim'] } as const;
const facts = { models: [model], deviceId: 'cpu:0', deviceName: 'a CPU', provider: 'cpu', threads: 1 } as const;

describe('what a device knows of its costs', () => {
  it('is nothing before an executor has timed them, and then what was fitted', () => {
    const costs = createDeviceCosts(memoryStore(), facts);
    expect(costs.costOf(model.modelId, 'dense')).toBeNull();
    costs.onTimings([{ modelId: model.modelId, head: 'dense', timings }]);
    const fitted = costs.costOf(model.modelId, 'dense');
    expect(fitted?.fixedMs).toBeCloseTo(cost.fixedMs);
    expect(fitted?.tokenMs).toBeCloseTo(cost.tokenMs);
    expect(costs.costOf('another', 'dense')).toBeNull();
  });

  it('is known to the next start, which times only what is missing; MaxSim is timed as its rows', () => {
    const store = memoryStore();
    createDeviceCosts(store, facts).onTimings([{ modelId: model.modelId, head: 'rows', timings }]);
    const heads = createDeviceCosts(store, facts).timedHeads();
    expect(heads.map(({ head }) => head)).toEqual(['rows', 'maxSim']);
  });

  it('is that of the dense vector for the rows that it is pooled from', () => {
    const costs = createDeviceCosts(memoryStore(), facts);
    costs.onTimings([{ modelId: model.modelId, head: 'dense', timings }]);
    expect(costs.costOf(model.modelId, 'hidden')).toEqual(costs.costOf(model.modelId, 'dense'));
  });

  it('is asked of the store once for each head, and not again for every batch', () => {
    const store = memoryStore();
    const costs = createDeviceCosts(store, facts);
    for (let batch = 0; batch < 10; batch += 1) costs.costOf(model.modelId, 'dense');
    expect(store.asked).toHaveLength(1);
  });

  it('stays what it was where timings cannot be fitted', () => {
    const costs = createDeviceCosts(memoryStore(), facts);
    costs.onTimings([{ modelId: model.modelId, head: 'dense', timings: [] }]);
    expect(costs.costOf(model.modelId, 'dense')).toBeNull();
  });
});
