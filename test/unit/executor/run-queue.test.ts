import { describe, expect, it } from 'vitest';
import { createRunQueue, maxUrgentInARow } from '../../../src/executor/run-queue.ts';
import type { RunQueue } from '../../../src/executor/run-queue.ts';

const batch = { modelId: 'm', head: 'dense', items: [], queryRows: null } as const;

/** A queue of runs with the ids 1, 2 and so on, each urgent or not. */
function queueOf(...urgency: boolean[]): RunQueue {
  const queue = createRunQueue();
  for (const [index, isUrgent] of urgency.entries()) queue.add({ type: 'run', runId: index + 1, isUrgent, batch });
  return queue;
}

const takeId = (queue: RunQueue) => queue.takeNext()?.question.runId ?? null;

function takeAll(queue: RunQueue): number[] {
  const ids: number[] = [];
  for (let id = takeId(queue); id !== null; id = takeId(queue)) ids.push(id);
  return ids;
}

describe('the runs that an executor was given', () => {
  it('come in the order in which they were given, urgent ones first', () => {
    expect(takeAll(queueOf(false, false, true, false, true))).toEqual([3, 5, 1, 2, 4]);
    expect(takeAll(queueOf())).toEqual([]);
  });

  it('that are not urgent are not kept back for ever', () => {
    const urgent = Array<boolean>(2 * maxUrgentInARow + 1).fill(true);
    const ids = takeAll(queueOf(false, false, ...urgent));
    expect([ids.indexOf(1), ids.indexOf(2)]).toEqual([maxUrgentInARow, 2 * maxUrgentInARow + 1]);
  });

  it('that are urgent and alone do not count: one that comes then is overtaken as often as any', () => {
    const queue = createRunQueue();
    const add = (runId: number, isUrgent: boolean) => {
      queue.add({ type: 'run', runId, isUrgent, batch });
    };
    for (let runId = 1; runId <= 10; runId += 1) {
      add(runId, true);
      expect(takeId(queue)).toBe(runId);
    }
    add(11, false);
    for (let runId = 12; runId < 12 + maxUrgentInARow; runId += 1) {
      add(runId, true);
      expect(takeId(queue)).toBe(runId);
    }
    add(99, true);
    expect(takeAll(queue)).toEqual([11, 99]);
  });

  it('know what was skipped of them while they wait and while they run', () => {
    const queue = queueOf(false, false);
    queue.skip(2, [4]);
    const first = queue.takeNext();
    expect(first?.skipped).toEqual(new Set());
    queue.skip(1, [0, 3]);
    expect(first?.skipped).toEqual(new Set([0, 3]));
    const second = queue.takeNext();
    expect(second?.skipped).toEqual(new Set([4]));
    // The first one has been answered.
    queue.skip(1, [1]);
    expect(first?.skipped).toEqual(new Set([0, 3]));
  });

  it('lose nothing where an unknown run is skipped', () => {
    const queue = queueOf(false);
    queue.skip(7, [0]);
    expect(queue.takeNext()?.skipped).toEqual(new Set());
    expect(queue.takeNext()).toBeNull();
    queue.skip(1, [0]);
    expect(queue.takeNext()).toBeNull();
  });
});
