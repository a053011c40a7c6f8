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
      rest: { predictedDrainMs: 1000 },
      isAdmitted: true,
      why: 'a turn just before the deadline is admitted',
    },
    {
      waiting: [1, 1],
      incoming: [1, 1],
      rest: { predictedDrainMs: 1001 },
      isAdmitted: false,
      why: 'a turn beyond the deadline is refused at once',
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

  it('advises the very time that the queue should take, where that is within its bounds', () => {
    const error = refusal(view({ items: 10, tokens: 10 }, { predictedDrainMs: 1234.4 }), { items: 1, tokens: 1 });
    expect(error?.data.retryAfterMs).toBe(1234);
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
});
