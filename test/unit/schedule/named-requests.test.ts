import { describe, expect, it } from 'vitest';
import { itemOf } from './fake-pool.ts';
import { createRig } from './rig.ts';

describe('what is told of a batch that gave nothing', () => {
  it('names each request that had texts in it, once', async () => {
    const { start, pool, told } = createRig({ maxBatchItems: 4, soon: (callback) => queueMicrotask(callback) });
    start([itemOf(1), itemOf(2)], { requestId: 'a' });
    start([itemOf(3)], { requestId: 'b' });
    await pool.settle();
    expect(pool.batches[0]?.items).toHaveLength(3);
    await pool.pending[0]?.fail('executorGone');
    expect(told.lostRuns).toMatchObject([{ items: 3, requestIds: ['a', 'b'] }]);
  });

  it('names no more than a line of a log can hold', async () => {
    const { start, pool, told } = createRig({
      maxBatchItems: 16,
      soon: (callback) => queueMicrotask(callback),
    });
    for (let id = 0; id < 12; id++) start([itemOf(id)], { requestId: `r${id}` });
    await pool.settle();
    await pool.pending[0]?.fail('executorGone');
    expect(told.lostRuns[0]?.items).toBe(12);
    expect(told.lostRuns[0]?.requestIds).toHaveLength(8);
  });

  it('names the request whose row was not a number', async () => {
    const { start, pool, told } = createRig();
    start([itemOf(1)], { requestId: 'a' });
    await pool.pending[0]?.succeed([{ values: Float32Array.of(Number.NaN), indices: null }]);
    expect(told.badResults).toEqual([
      { executorId: expect.any(String) as string, modelId: 'm', head: 'dense', requestIds: ['a'] },
    ]);
  });
});
