import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { batchMs } from '../../../src/device/batch-shape.ts';
import type { Item } from '../../../src/schedule/item.ts';
import { maxLookAheadItems, maxOvertakenMs, pickRuns } from '../../../src/schedule/look-ahead.ts';
import { shapeOf, type ShapeOptions } from './shapes.ts';

const limits = { maxBatchItems: 64, maxBatchTokens: 4096 };
const wide = { maxItems: 64, maxTokens: 4096, maxMs: 45 };
const key = { modelId: 'm', head: 'dense', queryRows: null } as const;

/** Items of these lengths that came at time 0. */
function waiting(lengths: readonly number[]) {
  const items = lengths.map((tokens, index): Item => ({
    key,
    run: { ids: new Int32Array(tokens), typeIds: null, keptRows: null },
    tokens,
    expectedMs: tokens,
    fingerprint: index,
    index,
    queuedAtMs: 0,
    state: 'queued',
    lostRuns: 0,
    lostStarts: 0,
    mustRunAlone: false,
  }));
  const call = { key, waiting: items };
  return items.map((item) => ({ call, item }));
}

const indexesOf = ({ items }: { items: readonly { item: Item }[] }) => items.map(({ item }) => item.index);

describe('the runs of a batch', () => {
  /** A run takes 10 ms and a token a hundredth: many texts together are far better than one. */
  const cost = { fixedMs: 10, tokenMs: 0.01, squaredTokenMs: 0 };
  const equalLength = shapeOf({ kind: 'equalLength', limits, cost });

  it('are those with the most useful tokens per millisecond, the best first', () => {
    const lengths = [5, 20, 20, 20, 7, 7, 30, 20];
    const picked = pickRuns(waiting(lengths), { shape: equalLength, bounds: wide, nowMs: 0 });
    expect(indexesOf(picked)).toEqual([1, 2, 3, 7, 6, 4, 5, 0]);
    const fewer = pickRuns(waiting(lengths), { shape: equalLength, bounds: { ...wide, maxMs: 25 }, nowMs: 0 });
    expect(indexesOf(fewer)).toEqual([1, 2, 3, 7, 6]);
  });

  it('do not count padding as useful', () => {
    const padded = shapeOf({
      kind: 'padded',
      provider: 'webgpu',
      limits,
      cost: { ...cost, fixedMs: 0 },
      fixedBatch: 2,
    });
    // Longest first, two a run: 100 with 99, then 98 with 10, then 9 with 8.
    const bounds = { ...wide, maxMs: 2.1 };
    expect(indexesOf(pickRuns(waiting([10, 98, 99, 100, 9, 8]), { shape: padded, bounds, nowMs: 0 }))).toEqual([3, 2]);
  });

  it(`leave the item whose turn it is waiting for ${maxOvertakenMs} ms, then its run is the next`, () => {
    const lengths = [5, 20, 20, 20];
    const facts = { shape: equalLength, bounds: { ...wide, maxMs: 12 } };
    expect(indexesOf(pickRuns(waiting(lengths), { ...facts, nowMs: maxOvertakenMs }))).toEqual([1, 2, 3]);
    expect(indexesOf(pickRuns(waiting(lengths), { ...facts, nowMs: maxOvertakenMs + 1 }))).toEqual([0]);
  });

  it('hold the item whose turn it is also where not all of its run fits, and longer texts are before it', () => {
    const padded = shapeOf({ kind: 'padded', provider: 'cuda', limits });
    const bounds = { ...wide, maxItems: 2, maxMs: 1000 };
    const picked = pickRuns(waiting([8, 16, 16, 16]), { shape: padded, bounds, nowMs: maxOvertakenMs + 1 });
    expect(indexesOf(picked)).toContain(0);
    expect(picked.items).toHaveLength(2);
  });

  it('are whole: a part of one is only taken where not even the first fits', () => {
    const facts = { shape: equalLength, nowMs: 0 };
    const lengths = [20, 20, 20, 9, 9, 9, 9];
    expect(indexesOf(pickRuns(waiting(lengths), { ...facts, bounds: { ...wide, maxItems: 5 } }))).toEqual([0, 1, 2]);
    expect(indexesOf(pickRuns(waiting(lengths), { ...facts, bounds: { ...wide, maxItems: 2 } }))).toEqual([0, 1]);
  });

  it('of a fixed number of texts are filled with texts, though one alone takes longer than a batch may', () => {
    const fixed = shapeOf({ kind: 'padded', limits, cost: { ...cost, fixedMs: 100 }, fixedBatch: 4 });
    const picked = pickRuns(waiting([8, 8, 8, 8, 8]), { shape: fixed, bounds: wide, nowMs: 0 });
    expect(picked.items).toHaveLength(4);
    expect(picked.expectedMs).toBeCloseTo(batchMs(fixed, [8]), 9);
  });

  it(`are looked for among the first ${maxLookAheadItems} items`, () => {
    const lengths = [...Array<number>(maxLookAheadItems).fill(5), 30];
    const picked = pickRuns(waiting(lengths), { shape: equalLength, bounds: { ...wide, maxMs: 11 }, nowMs: 0 });
    expect(indexesOf(picked)).not.toContain(maxLookAheadItems);
    expect(picked.items.length).toBeGreaterThan(0);
  });
});

describe('whatever waits', () => {
  const anyKind = fc.constantFrom<ShapeOptions['kind']>('equalLength', 'padded');
  const anyProvider = fc.constantFrom<NonNullable<ShapeOptions['provider']>>('cpu', 'webgpu', 'cuda');

  it('the run with the most useful tokens per millisecond is picked, where it fits', () => {
    const anyLengths = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(anyLengths, anyKind, anyProvider, (lengths, kind, provider) => {
        const shape = shapeOf({ kind, provider, limits, cost: { fixedMs: 3, tokenMs: 0.05, squaredTokenMs: 0.001 } });
        const picked = new Set(indexesOf(pickRuns(waiting(lengths), { shape, bounds: wide, nowMs: 0 })));
        const worth = shape.plan(lengths).map((run) => ({
          isPicked: run.positions.every((position) => picked.has(position)),
          fits: shape.runMs(run) <= wide.maxMs,
          tokensPerMs: run.positions.reduce((sum, position) => sum + (lengths[position] ?? 0), 0) / shape.runMs(run),
        }));
        const best = Math.max(...worth.map(({ tokensPerMs }) => tokensPerMs));
        const first = worth.find(({ tokensPerMs }) => tokensPerMs === best);
        if (first?.fits === true) expect(first.isPicked).toBe(true);
      }),
    );
  });
});
