import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Conversation, GivenRun } from '../../../src/device/conversation.ts';
import type { RunOptions } from '../../../src/device/open-runs.ts';
import { everyHead } from '../../../src/device/warm-up.ts';
import type { RunItem } from '../../../src/executor/protocol.ts';
import { endExecutors, openExecutor } from './open-executor.ts';
import { batchOf, embeddedLoads, processTestTimeoutMs, removeCache, textOf } from './real-device.ts';

let executor: Conversation;
beforeAll(async () => {
  const loads = await embeddedLoads();
  executor = openExecutor();
  await executor.load(loads, 1, { name: 'cpu', deviceIndex: 0 }, everyHead(loads));
}, processTestTimeoutMs);
afterAll(async () => {
  await endExecutors();
  removeCache();
});

const urgent: RunOptions = { isUrgent: true, expectedMs: 0 };
const dense = (items: readonly RunItem[], options?: RunOptions): GivenRun =>
  executor.run(batchOf('dense', items), options);
const textsOf = (count: number, tokens: number) => Array.from({ length: count }, (_, seed) => textOf(tokens, seed));

describe('a real executor that has several runs', { timeout: processTestTimeoutMs }, () => {
  it('answers each with its own rows, an urgent one before one that waits', async () => {
    const answered: string[] = [];
    const texts = { first: textsOf(16, 256), second: textsOf(2, 9), third: textsOf(1, 5) };
    const runs = { first: dense(texts.first), second: dense(texts.second), third: dense(texts.third, urgent) };
    for (const [name, { answer }] of Object.entries(runs)) void answer.then(() => answered.push(name));
    const [first, second, third] = await Promise.all(Object.values(runs).map(({ answer }) => answer));
    expect(answered).toEqual(['first', 'third', 'second']);
    expect([first, second, third].map((one) => one?.paddedTokens)).toEqual([16 * 256, 2 * 9, 5]);
    expect(second?.rows).toEqual((await dense(texts.second).answer).rows);
    expect(third?.rows).toEqual((await dense(texts.third).answer).rows);
    expect(first?.rows.at(-1)).toEqual((await dense(texts.first.slice(-1)).answer).rows[0]);
  });

  it('leaves out what was skipped before it began, in runs that wait and in the one of the moment', async () => {
    const items = textsOf(16, 256);
    const [first, second] = [dense(items), dense(textsOf(3, 9))];
    first.skip([15]);
    second.skip([0, 2]);
    const [begun, waiting] = await Promise.all([first.answer, second.answer]);
    expect(begun.rows[0]).not.toBeNull();
    expect(begun.rows[15]).toBeNull();
    expect(begun.paddedTokens).toBe(15 * 256);
    expect(waiting.rows.map((row) => row === null)).toEqual([true, false, true]);
    expect(waiting.paddedTokens).toBe(9);
  });

  it('spends no time in the engine on a run of which everything was skipped, and goes on', async () => {
    const [first, second, third] = [dense(textsOf(8, 256)), dense(textsOf(8, 256)), dense(textsOf(1, 5))];
    second.skip(Array.from({ length: 8 }, (_, position) => position));
    const skipped = await second.answer;
    expect(skipped).toMatchObject({ rows: Array<null>(8).fill(null), computeMs: 0, paddedTokens: 0 });
    expect((await first.answer).computeMs).toBeGreaterThan(0);
    expect((await third.answer).rows[0]?.values.length).toBeGreaterThan(0);
  });

  it('answers the others where one fails', async () => {
    const [first, bad, last] = [dense(textsOf(4, 256)), dense([textOf(0, 1)]), dense(textsOf(1, 5))];
    await expect(bad.answer).rejects.toMatchObject({ kind: 'runFailed' });
    expect((await first.answer).rows).toHaveLength(4);
    expect((await last.answer).rows).toHaveLength(1);
  });

  it('answers everything that it was given before it ends', async () => {
    const other = openExecutor();
    const loads = await embeddedLoads();
    await other.load(loads, 1, { name: 'cpu', deviceIndex: 0 }, everyHead(loads));
    const runs = [textsOf(4, 256), textsOf(2, 64)].map((items) => other.run(batchOf('dense', items)).answer);
    other.stop();
    expect((await Promise.all(runs)).map(({ rows }) => rows.length)).toEqual([4, 2]);
  });
});
