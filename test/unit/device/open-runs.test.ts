import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpenRuns } from '../../../src/device/open-runs.ts';
import { createRunQueue, maxUrgentInARow } from '../../../src/executor/run-queue.ts';
import type { QueuedRun } from '../../../src/executor/run-queue.ts';
import { batchOf } from './device.ts';

const batch = batchOf(1);
const runOf = (runId: number, isUrgent = false, expectedMs = 10) => ({
  runId,
  isUrgent,
  expectedMs,
  batch,
  skipped: new Set<number>(),
});

/** What a talk with an executor is made of, as far as the runs are concerned. */
const steps = fc.array(
  fc.record({
    kind: fc.constantFrom('give', 'give', 'end'),
    isUrgent: fc.boolean(),
    mayQueue: fc.boolean(),
    ms: fc.integer({ min: 0, max: 50 }),
  }),
  { maxLength: 60 },
);

/** Open runs, and an executor that runs what its queue says. */
function createTalk() {
  const runs = new OpenRuns();
  const queue = createRunQueue();
  const begun: number[] = [];
  let running: QueuedRun | null = null;
  let lastRunId = 0;
  const begin = () => {
    running = queue.takeNext();
    if (running !== null) begun.push(running.question.runId);
    return running?.question.runId ?? null;
  };
  return {
    runs,
    begun,
    runningId: () => running?.question.runId ?? null,
    give(isUrgent: boolean, expectedMs: number, nowMs: number): number {
      const runId = ++lastRunId;
      queue.add({ type: 'run', runId, isUrgent, batch });
      runs.add(runOf(runId, isUrgent, expectedMs), nowMs);
      if (running === null) begin();
      return runId;
    },
    end(nowMs: number) {
      if (running === null) return;
      const { runId } = running.question;
      runs.finish(runId, begin(), nowMs);
    },
  };
}

describe('the open runs of an executor', () => {
  it('are, whatever is given and answered, those that the executor has, and at most one of either urgency waits', () => {
    fc.assert(
      fc.property(steps, (sequence) => {
        const { runs, runningId, give, end } = createTalk();
        let nowMs = 0;
        for (const { kind, ms, ...wish } of sequence) {
          nowMs += ms;
          if (kind === 'end') end(nowMs);
          else if (runs.all.length === 0 || runs.hasRoom(wish)) give(wish.isUrgent, ms, nowMs);
          expect(runs.startedId).toBe(runningId());
          const waiting = runs.all.filter(({ runId }) => runId !== runningId());
          const urgent = waiting.filter(({ isUrgent }) => isUrgent).length;
          const others = waiting.length - urgent;
          expect(urgent).toBeLessThanOrEqual(1);
          expect(others).toBeLessThanOrEqual(1);
          const isBusy = runningId() !== null;
          expect(runs.all.length > 0).toBe(isBusy);
          expect(runs.hasRoom({ isUrgent: false, mayQueue: false })).toBe(false);
          expect(runs.hasRoom({ isUrgent: false, mayQueue: true })).toBe(isBusy && waiting.length === 0);
          expect(runs.hasRoom({ isUrgent: true, mayQueue: true })).toBe(isBusy && urgent === 0);
          expect(runs.hasRoom({ isUrgent: true, mayQueue: false })).toBe(isBusy && urgent === 0 && others === 1);
        }
      }),
    );
  });

  it('count those that come before one that is given now, until those that are not urgent have their turn', () => {
    fc.assert(
      fc.property(steps, fc.boolean(), (sequence, isUrgent) => {
        const { runs, begun, give, end } = createTalk();
        for (const { kind, ...wish } of sequence) {
          if (kind === 'end') end(0);
          else if (runs.all.length === 0 || runs.hasRoom(wish)) give(wish.isUrgent, 1, 0);
        }
        const before = runs.countBefore(isUrgent);
        const runId = give(isUrgent, 1, 0);
        const known = begun.length - (before === 0 ? 1 : 0);
        for (let ended = 0; ended < 4; ended += 1) end(0);
        // The one of the moment has begun already.
        const between = begun.indexOf(runId) - known;
        const expected = Math.max(0, before - 1);
        if (isUrgent) expect([expected, expected + 1]).toContain(between);
        else expect(between).toBe(expected);
      }),
    );
  });

  it('that are not urgent begin at last, however many urgent ones come', () => {
    const { begun, give, end } = createTalk();
    give(false, 1, 0);
    const patient = give(false, 1, 0);
    for (let urgent = 0; urgent < 3 * maxUrgentInARow; urgent += 1) {
      give(true, 1, 0);
      end(0);
    }
    expect(begun.indexOf(patient)).toBe(maxUrgentInARow + 1);
  });

  it('take what they should take, less what the one of the moment has run already', () => {
    const runs = new OpenRuns();
    expect(runs.backlogMs(0, false)).toBe(0);
    runs.add(runOf(1, false, 30), 100);
    runs.add(runOf(2, false, 7), 105);
    runs.add(runOf(3, true, 4), 106);
    expect(runs.backlogMs(110, false)).toBe(20 + 7 + 4);
    expect(runs.backlogMs(110, true)).toBe(20 + 4);
    runs.finish(1, 3, 120);
    expect(runs.backlogMs(121, true)).toBe(3);
    runs.finish(3, 2, 124);
    expect(runs.backlogMs(124, true)).toBe(7);
  });

  it('are expected to take longer the later they are', () => {
    const runs = new OpenRuns();
    runs.add(runOf(1, false, 10), 0);
    expect([5, 10, 15, 1_000].map((nowMs) => runs.backlogMs(nowMs, true))).toEqual([5, 0, 5, 990]);
  });

  it('go on with the one that the executor names', () => {
    const runs = new OpenRuns();
    for (const runId of [1, 2, 3]) runs.add(runOf(runId, runId === 3), 0);
    runs.finish(1, 2, 0);
    expect(runs.startedId).toBe(2);
  });

  it('go on with the urgent one, else with the first, where the executor had not read of any when it answered', () => {
    const runs = new OpenRuns();
    for (const runId of [1, 2, 3]) runs.add(runOf(runId, runId === 3), 0);
    runs.finish(1, null, 0);
    expect(runs.startedId).toBe(3);
    runs.finish(3, null, 0);
    expect(runs.startedId).toBe(2);
    runs.finish(2, null, 0);
    expect(runs.startedId).toBeNull();
    expect(runs.all).toEqual([]);
  });

  it('are found by their id, and by nothing else', () => {
    const runs = new OpenRuns();
    runs.add(runOf(1), 0);
    expect(runs.find(1)?.runId).toBe(1);
    for (const id of [2, '1', null, undefined]) expect(runs.find(id)).toBeUndefined();
  });
});
