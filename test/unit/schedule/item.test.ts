import { describe, expect, it } from 'vitest';
import { enterQueue, moveItem, type Item, type ItemGauges, type ItemState } from '../../../src/schedule/item.ts';

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
  index: 0,
  fingerprint: 0,
  queuedAtMs: 0,
  state,
  lostRuns: 0,
  mustRunAlone: false,
});
const gaugesWith = (item: Item): ItemGauges => ({
  queuedItems: Number(item.state === 'queued'),
  queuedTokens: item.state === 'queued' ? item.tokens : 0,
  runningItems: Number(item.state === 'running'),
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
    const gauges = { queuedItems: 0, queuedTokens: 0, runningItems: 0 };
    enterQueue(itemIn('queued'), gauges);
    expect(gauges).toEqual({ queuedItems: 1, queuedTokens: 7, runningItems: 0 });
  });
});
