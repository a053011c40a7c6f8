/** Owns measuring whether `retryAfterMs` is the time after which the refused call is taken. */
import { setTimeout as wait } from 'node:timers/promises';
import type { HttpClient } from '../../src/bench/http-client.ts';
import { frameOf } from './calls.ts';

/** How often it is measured. */
const rounds = 3;
/** Calls at once that fill any queue. */
const burst = 400;
/** A refusal is there within this time; what is not refused by then was taken. @unit ms */
const decisionMs = 60;
/** Without a refusal for so long, a burst has been decided. @unit ms */
const quietMs = 150;
/** Pause between two tries. @unit ms */
const pauseMs = 40;
/** Longest time until an equal call is taken. @unit ms */
const maxWaitMs = 60_000;

/** What a refusal said, and what was true. */
export interface ReturnTime {
  /** @unit ms */
  readonly retryAfterMs: number;
  /** @unit ms */
  readonly admittedMs: number;
}

interface Refusal {
  readonly retryAfterMs: number;
  readonly atMs: number;
}

/** The refusal of an answer; null for any other answer. */
function refusalOf(body: Buffer): number | null {
  const { error } = JSON.parse(body.toString()) as { error?: { data?: { retryAfterMs?: number } } };
  return error?.data?.retryAfterMs ?? null;
}

/** Fills the queue, and from the last refusal on asks again and again until an equal call is taken. */
export async function measureReturns(client: HttpClient, inputs: readonly string[]): Promise<ReturnTime[]> {
  let calls = 0;
  // Of the same size and not the same: equal texts that wait at the same time would be run once.
  const post = async () => {
    const params = { inputs: inputs.map((text) => `${1000 + ++calls} ${text}`) };
    return (await client.post('/rcp/embed', frameOf('return', { method: 'embed', params }))).body;
  };
  const measured: ReturnTime[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const refusals: Refusal[] = [];
    const running = Array.from({ length: burst }, async () => {
      const retryAfterMs = refusalOf(await post());
      if (retryAfterMs !== null) refusals.push({ retryAfterMs, atMs: performance.now() });
    });
    // The whole burst has been decided once no more is refused; the last refusal saw the queue as it then was.
    let seen = -1;
    const state = { isAnswered: false };
    const all = Promise.all(running).then(() => (state.isAnswered = true));
    while ((refusals.length !== seen || seen === 0) && !state.isAnswered) {
      seen = refusals.length;
      await Promise.race([all, wait(quietMs)]);
    }
    const last = refusals.at(-1);
    if (last !== undefined) {
      measured.push({ retryAfterMs: last.retryAfterMs, admittedMs: (await untilTaken(post)) - last.atMs });
    }
    await all;
  }
  return measured;
}

/** When a call was sent that was not refused. */
async function untilTaken(post: () => Promise<Buffer>): Promise<number> {
  const endMs = performance.now() + maxWaitMs;
  while (performance.now() < endMs) {
    const atMs = performance.now();
    const answer = post();
    const decided = await Promise.race([answer.then(refusalOf), wait(decisionMs, null)]);
    if (decided === null) {
      // A refusal that was only late is none that was taken.
      if (refusalOf(await answer) === null) return atMs;
    } else await wait(pauseMs);
  }
  return endMs;
}
