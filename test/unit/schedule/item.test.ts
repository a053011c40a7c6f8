import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  emptyGauges,
  enterQueue,
  moveItem,
  type Item,
  type ItemGauges,
  type ItemState,
} from '../../../src/schedule/item.ts';

const states: readonly ItemState[] = ['queued', 'running', 'done', 'failed', 'cancelled'];
const legal = new Set([
  'queued running',
  'queued cancelled',
  'queued failed',
  'running done',
  'running failed',
  'running queued',
  'running cancelled',
]);

const itemIn = (state: ItemState): Item => ({
  key: { modelId: 'm', head: 'dense', queryRows: null },
  run: { ids: new Int32Array(7), typeIds: null, keptRows: null },
  tokens: 7,
  expectedMs: 0.7,
  index: 0,
  fingerprint: 0,
  queuedAtMs: 0,
  state,
  lostRuns: 0,
  lostStarts: 0,
  mustRunAlone: false,
});
const gaugesWith = (item: Item): ItemGauges => ({
  queuedItems: Number(item.state === 'queued'),
  queuedTokens: item.state === 'queued' ? item.tokens : 0,
  queuedMs: item.state === 'queued' ? item.expectedMs : 0,
  runningItems: Number(item.state === 'running'),
  runningMs: item.state === 'running' ? item.expectedMs : 0,
});

const moves = states.flatMap((from) => states.map((to) => ({ from, to, isLegal: legal.has(`${from} ${to}`) })));

describe('the states of an item', () => {
  it.each(moves.filter(({ isLegal }) => isLegal))('allow $from -> $to, and the gauges follow', ({ from, to }) => {
    const item = itemIn(from);
    const gauges = gaugesWith(item);
    moveItem(item, to, gauges);
    expect(item.state).toBe(to);
    expect(gauges).toEqual(gaugesWith(item));
  });

  it.each(moves.filter(({ isLegal }) => !isLegal))('refuse $from -> $to and change nothing', ({ from, to }) => {
    const item = itemIn(from);
    const gauges = gaugesWith(item);
    expect(() => {
      moveItem(item, to, gauges);
    }).toThrow(`item cannot move from ${from} to ${to}`);
    expect(item.state).toBe(from);
    expect(gauges).toEqual(gaugesWith(item));
  });

  it('count a new item as queued', () => {
    const gauges = emptyGauges();
    enterQueue(itemIn('queued'), gauges);
    expect(gauges).toEqual({ queuedItems: 1, queuedTokens: 7, queuedMs: 0.7, runningItems: 0, runningMs: 0 });
  });

  it('leave the expected milliseconds at exactly zero, whatever fractions were added and taken in whatever order', () => {
    const anyMs = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(anyMs, fc.nat()), { minLength: 1, maxLength: 30 }), (expected) => {
        const gauges = emptyGauges();
        const items = expected.map(([expectedMs]) => ({ ...itemIn('queued'), expectedMs }));
        for (const item of items) enterQueue(item, gauges);
        const shuffled = items.map((item, at) => ({ item, order: expected[at]?.[1] ?? 0 }));
        shuffled.sort((left, right) => left.order - right.order);
        for (const { item } of shuffled) moveItem(item, 'running', gauges);
        for (const { item } of shuffled.reverse()) moveItem(item, 'done', gauges);
        expect(gauges).toEqual(emptyGauges());
      }),
    );
  });
});
