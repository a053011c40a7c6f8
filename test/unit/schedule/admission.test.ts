import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import {
  checkAdmission,
  maxRetryAfterMs,
  minRetryAfterMs,
  type AdmissionView,
  type Load,
} from '../../../src/schedule/admission.ts';

const limits = { maxQueuedItems: 10, maxQueuedTokens: 100 };
const view = (waiting: Load, rest: Partial<AdmissionView> = {}): AdmissionView => ({
  waiting,
  idleExecutors: 0,
  predictedDrainMs: 0,
  ownMs: 0,
  remainingMs: 1000,
  ...rest,
});

function refusal(given: AdmissionView, incoming: Load): ServiceError | null {
  try {
    checkAdmission(given, incoming, limits);
    return null;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

describe('admission', () => {
  it.each([
    { waiting: [0, 0], incoming: [1_000_000, 1e9], rest: {}, isAdmitted: true, why: 'an empty queue admits any size' },
    {
      waiting: [0, 0],
      incoming: [1, 1],
      rest: { predictedDrainMs: 9e9 },
      isAdmitted: true,
      why: 'an empty queue admits whatever the estimate says',
    },
    { waiting: [9, 9], incoming: [1, 1], rest: {}, isAdmitted: true, why: 'the limit itself is admitted' },
    { waiting: [9, 9], incoming: [2, 2], rest: {}, isAdmitted: false, why: 'one item more is refused' },
    {
      waiting: [9, 9],
      incoming: [2, 2],
      rest: { idleExecutors: 1 },
      isAdmitted: true,
      why: 'each idle executor makes room for one more',
    },
    {
      waiting: [9, 9],
      incoming: [3, 3],
      rest: { idleExecutors: 1 },
      isAdmitted: false,
      why: 'an idle executor makes room for only one',
    },
    { waiting: [1, 99], incoming: [1, 1], rest: {}, isAdmitted: true, why: 'the token limit itself is admitted' },
    { waiting: [1, 99], incoming: [1, 2], rest: {}, isAdmitted: false, why: 'one token more is refused' },
    {
      waiting: [1, 1],
      incoming: [1, 1],
      rest: { predictedDrainMs: 350, ownMs: 100 },
      isAdmitted: true,
      why: 'an end within four fifths of the time left, turns with later calls included, is admitted',
    },
    {
      waiting: [1, 1],
      incoming: [1, 1],
      rest: { predictedDrainMs: 350, ownMs: 101 },
      isAdmitted: false,
      why: 'an end beyond them is refused at once',
    },
    { waiting: [50, 500], incoming: [0, 0], rest: {}, isAdmitted: true, why: 'a call without items needs no room' },
  ])('$why', ({ waiting, incoming, rest, isAdmitted }) => {
    const load = ([items = 0, tokens = 0]: number[]) => ({ items, tokens });
    const error = refusal(view(load(waiting), rest), load(incoming));
    expect(error?.errorName).toBe(isAdmitted ? undefined : 'overloaded');
  });

  it('advises a whole number of milliseconds within its bounds, whatever the estimate', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e12, noNaN: true }), (predictedDrainMs) => {
        const error = refusal(view({ items: 10, tokens: 10 }, { predictedDrainMs }), { items: 1, tokens: 1 });
        const retryAfterMs = error?.data.retryAfterMs ?? Number.NaN;
        expect(Number.isInteger(retryAfterMs)).toBe(true);
        expect(retryAfterMs).toBeGreaterThanOrEqual(minRetryAfterMs);
        expect(retryAfterMs).toBeLessThanOrEqual(maxRetryAfterMs);
      }),
    );
  });

  it('advises the time after which the very same call would be let in', () => {
    const incoming = fc.record({ items: fc.integer({ min: 1, max: 10 }), tokens: fc.integer({ min: 1, max: 100 }) });
    const given = fc.record({
      waiting: fc.record({ items: fc.integer({ min: 1, max: 40 }), tokens: fc.integer({ min: 1, max: 400 }) }),
      idleExecutors: fc.constant(0),
      predictedDrainMs: fc.integer({ min: 200, max: 50_000 }),
      ownMs: fc.integer({ min: 0, max: 500 }),
      remainingMs: fc.integer({ min: 2_000, max: 20_000 }),
    });
    fc.assert(
      fc.property(given, incoming, (before, load) => {
        const waitMs = refusal(before, load)?.data.retryAfterMs ?? 0;
        if (waitMs <= minRetryAfterMs) return;
        // Everything leaves evenly while nothing else comes.
        const after = (ms: number): AdmissionView => {
          const left = Math.max(0, 1 - ms / before.predictedDrainMs);
          const waiting = { items: before.waiting.items * left, tokens: before.waiting.tokens * left };
          return { ...before, waiting, predictedDrainMs: before.predictedDrainMs * left };
        };
        expect(refusal(after(waitMs + 1), load)).toBeNull();
        if (waitMs < before.predictedDrainMs) expect(refusal(after(waitMs * 0.9), load)).not.toBeNull();
      }),
    );
  });

  it('says which limit was passed, and by how much', () => {
    expect(refusal(view({ items: 10, tokens: 10 }), { items: 5, tokens: 1 })?.data).toMatchObject({
      limit: 10,
      received: 15,
    });
    expect(refusal(view({ items: 1, tokens: 90 }), { items: 1, tokens: 11 })?.data).toMatchObject({
      limit: 100,
      received: 101,
    });
  });

  it('tells a person how much would be how much, and the limit, with units', () => {
    const messageOf = (given: AdmissionView, incoming: Load) => refusal(given, incoming)?.message;
    expect(messageOf(view({ items: 10, tokens: 10 }), { items: 5, tokens: 1 })).toBe(
      'The queue is full: with this call 15 inputs would wait, the limit is 10; try again later',
    );
    expect(messageOf(view({ items: 1, tokens: 90 }), { items: 1, tokens: 11 })).toBe(
      'The queue is full: with this call 101 tokens would wait, the limit is 100; try again later',
    );
    const slow = view({ items: 1, tokens: 1 }, { predictedDrainMs: 350, ownMs: 101 });
    expect(messageOf(slow, { items: 1, tokens: 1 })).toBe(
      'The queue is full: this call would end in about 0.9 s, the limit is 0.8 s; try again later',
    );
  });
});
