import { describe, expect, it } from 'vitest';
import { createTurns } from '../../../src/tokenize/turns.ts';

describe('turns', () => {
  it('one holds the turn, the others follow in order of arrival', async () => {
    const turns = createTurns(10);
    const order: string[] = [];
    const first = await turns.take();
    const waiting = ['second', 'third'].map(async (name) => {
      const giveBack = await turns.take();
      order.push(name);
      giveBack();
    });
    await new Promise(setImmediate);
    expect(order).toEqual([]);
    first();
    await Promise.all(waiting);
    expect(order).toEqual(['second', 'third']);
  });

  it('giving back twice frees the turn once', async () => {
    const turns = createTurns(10);
    const first = await turns.take();
    first();
    const second = await turns.take();
    first();
    let hasThird = false;
    const third = turns.take().then((giveBack) => {
      hasThird = true;
      giveBack();
    });
    await new Promise(setImmediate);
    expect(hasThird).toBe(false);
    second();
    await third;
  });

  it('an aborted wait ends with the reason of the signal and leaves the line', async () => {
    const turns = createTurns(1);
    const giveBack = await turns.take();
    const controller = new AbortController();
    const reason = new Error('gone');
    const wait = turns.take(controller.signal);
    controller.abort(reason);
    await expect(wait).rejects.toBe(reason);
    await expect(turns.take(controller.signal)).rejects.toBe(reason);
    const next = turns.take();
    giveBack();
    (await next)();
  });

  it('a full line answers overloaded', async () => {
    const turns = createTurns(1);
    const giveBack = await turns.take();
    const second = turns.take();
    await expect(turns.take()).rejects.toMatchObject({ errorName: 'overloaded', data: { retryAfterMs: 2_000 } });
    giveBack();
    (await second)();
  });
});
