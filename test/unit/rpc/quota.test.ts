import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { createCallerQuota, withQuota, type QuotaLimits, type QuotaReason } from '../../../src/rpc/quota.ts';
import { minRetryAfterMs } from '../../../src/schedule/admission.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { createFakeScheduler } from '../task/fakes.ts';
import { createHarness } from './harness.ts';

const none: QuotaLimits = { requestsPerSecond: 0, requestBurst: 0, queuedTokens: 0 };

function createQuota(limits: Partial<QuotaLimits>) {
  const clock = createFakeClock();
  const refused: QuotaReason[] = [];
  const quota = createCallerQuota({ ...none, ...limits }, { clock, onRefused: (reason) => refused.push(reason) });
  return { clock, refused, quota };
}

function refusalOf(work: () => unknown): ServiceError {
  try {
    work();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('calls in time', () => {
  it('are not counted without a limit', () => {
    const { quota, refused } = createQuota({});
    for (let call = 0; call < 10_000; call++) expect(quota.takeRequest()).toBeNull();
    expect(refused).toEqual([]);
  });

  it('may come as a burst after a silence, then at the rate', async () => {
    const { quota, clock, refused } = createQuota({ requestsPerSecond: 2, requestBurst: 3 });
    expect([1, 2, 3].map(() => quota.takeRequest())).toEqual([null, null, null]);
    expect(quota.takeRequest()).toBe(500);
    expect(refused).toEqual(['rate']);
    await clock.advance(500);
    expect(quota.takeRequest()).toBeNull();
    expect(quota.takeRequest()).toBe(500);
    await clock.advance(60_000);
    expect([1, 2, 3].map(() => quota.takeRequest())).toEqual([null, null, null]);
    expect(quota.takeRequest()).toBe(500);
  });

  it('may come at once as many as in a second where no burst is set', () => {
    const { quota } = createQuota({ requestsPerSecond: 5 });
    expect([1, 2, 3, 4, 5].map(() => quota.takeRequest())).toEqual([null, null, null, null, null]);
    expect(quota.takeRequest()).toBe(200);
  });

  it('of an array are paid for by those that follow it', async () => {
    const { quota, clock } = createQuota({ requestsPerSecond: 10, requestBurst: 1 });
    expect(quota.takeRequest()).toBeNull();
    quota.chargeRequests(7);
    expect(quota.takeRequest()).toBe(800);
    await clock.advance(800);
    expect(quota.takeRequest()).toBeNull();
  });

  it('are let in exactly when they come back at the time they were told', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5000 }),
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 0, max: 100 }),
        async (requestsPerSecond, requestBurst, charged) => {
          const { quota, clock } = createQuota({ requestsPerSecond, requestBurst });
          quota.chargeRequests(charged);
          let waitMs = quota.takeRequest();
          while (waitMs === null) waitMs = quota.takeRequest();
          await clock.advance(waitMs);
          expect(quota.takeRequest()).toBeNull();
        },
      ),
    );
  });

  it('are never more than the burst and the rate allow, whenever they come', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 60 }),
        async (requestsPerSecond, requestBurst, pausesMs) => {
          const { quota, clock } = createQuota({ requestsPerSecond, requestBurst });
          let letIn = 0;
          for (const pauseMs of pausesMs) {
            await clock.advance(pauseMs);
            while (letIn < 100_000 && quota.takeRequest() === null) letIn += 1;
          }
          expect(letIn).toBeLessThanOrEqual(requestBurst + (clock.nowMs() / 1000) * requestsPerSecond + 1e-3);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('keep their count when the limits change, and a new rate starts with its burst', async () => {
    const { quota, clock } = createQuota({ requestsPerSecond: 1, requestBurst: 10 });
    for (let call = 0; call < 10; call++) quota.takeRequest();
    quota.update({ ...none, requestsPerSecond: 100, requestBurst: 10 });
    expect(quota.takeRequest()).toBe(10);
    await clock.advance(1000);
    quota.update({ ...none, requestsPerSecond: 1, requestBurst: 2 });
    expect([1, 2, 3].map(() => quota.takeRequest())).toEqual([null, null, 1000]);
    quota.update(none);
    quota.update({ ...none, requestsPerSecond: 1, requestBurst: 1 });
    expect([1, 2].map(() => quota.takeRequest())).toEqual([null, 1000]);
  });
});

describe('tokens in the queue', () => {
  const drainMs = () => 1000;

  it('over the limit are refused with the part of the drain time that must pass', () => {
    const { quota, refused } = createQuota({ queuedTokens: 100 });
    quota.claimTokens({ items: 1, tokens: 80 }, drainMs);
    const error = refusalOf(() => quota.claimTokens({ items: 1, tokens: 40 }, drainMs));
    expect([error.errorName, error.data]).toEqual([
      'overloaded',
      expect.objectContaining({ retryAfterMs: 250, limit: 100, received: 120 }),
    ]);
    expect(refused).toEqual(['queuedTokens']);
    expect(refusalOf(() => quota.claimTokens({ items: 1, tokens: 40 }, () => 0)).data.retryAfterMs).toBe(
      minRetryAfterMs,
    );
    quota.claimTokens({ items: 1, tokens: 20 }, drainMs);
  });

  it('of a caller who has none there may be any number', () => {
    const { quota } = createQuota({ queuedTokens: 100 });
    const claim = quota.claimTokens({ items: 5, tokens: 5000 }, drainMs);
    refusalOf(() => quota.claimTokens({ items: 1, tokens: 1 }, drainMs));
    claim.release();
    quota.claimTokens({ items: 5, tokens: 5000 }, drainMs);
  });

  it('are given back text by text, and never twice', () => {
    const { quota } = createQuota({ queuedTokens: 100 });
    const first = quota.claimTokens({ items: 10, tokens: 100 }, drainMs);
    for (let item = 0; item < 3; item++) first.itemDone();
    quota.claimTokens({ items: 1, tokens: 30 }, drainMs);
    refusalOf(() => quota.claimTokens({ items: 1, tokens: 1 }, drainMs));
    for (let item = 0; item < 30; item++) first.itemDone();
    first.release();
    first.release();
    quota.claimTokens({ items: 1, tokens: 70 }, drainMs);
    refusalOf(() => quota.claimTokens({ items: 1, tokens: 1 }, drainMs));
  });
});

describe('the scheduler of a caller', () => {
  it('refuses before any work where the share is full, and gives everything back at the end', async () => {
    const scheduler = createFakeScheduler();
    const { quota } = createQuota({ queuedTokens: 10 });
    const limited = withQuota(scheduler, quota);
    const first = limited.admit('m', { items: 1, tokens: 8 }, 1000);
    expect(refusalOf(() => limited.admit('m', { items: 1, tokens: 8 }, 1000)).errorName).toBe('overloaded');
    expect(scheduler.loads).toHaveLength(1);
    first.release();
    expect(scheduler.releaseCount()).toBe(1);
    limited.admit('m', { items: 1, tokens: 8 }, 1000);
  });

  it('holds nothing of what the queue itself refused', () => {
    const scheduler = createFakeScheduler();
    const { quota } = createQuota({ queuedTokens: 10 });
    const limited = withQuota(scheduler, quota);
    scheduler.refuse(new ServiceError('overloaded', 'full'));
    for (let call = 0; call < 3; call++) {
      expect(refusalOf(() => limited.admit('m', { items: 1, tokens: 9 }, 1000)).message).toBe('full');
    }
  });
});

describe('a call of a caller with limits', () => {
  const ask = (id: number) => `{"id":${String(id)},"method":"embed","params":{"inputs":["abc"]}}`;

  it('is refused with a time to come back, in the body and to the transport, while other callers are served', async () => {
    const { reply, scheduler } = createHarness();
    const { quota } = createQuota({ queuedTokens: 1 });
    scheduler.hang();
    const controller = new AbortController();
    const held = reply(ask(1), { quota, signal: controller.signal });
    const { body, retryAfterMs } = await reply(ask(2), { quota });
    expect(JSON.parse(body?.toString() ?? '')).toMatchObject({
      id: 2,
      error: { code: -32011, data: { retryAfterMs } },
    });
    expect(retryAfterMs).toBeGreaterThanOrEqual(minRetryAfterMs);
    expect(scheduler.jobs).toHaveLength(1);
    const other = reply(ask(3), { signal: controller.signal });
    controller.abort();
    await Promise.all([held, other]);
    expect(scheduler.loads).toHaveLength(2);
  });

  it('pays for every member of an array but the one that was let in', async () => {
    const { reply } = createHarness();
    const { quota } = createQuota({ requestsPerSecond: 1, requestBurst: 3 });
    quota.takeRequest();
    await reply(`[${ask(1)},${ask(2)},${ask(3)}]`, { quota });
    expect(quota.takeRequest()).toBe(1000);
  });
});
