import { describe, expect, it } from 'vitest';
import { executorTransitions, nextExecutorState } from '../../../src/device/executor-state.ts';
import type { ExecutorEvent } from '../../../src/device/executor-state.ts';
import type { ExecutorState } from '../../../src/device/pool.ts';

const states: readonly ExecutorState[] = ['starting', 'warming', 'ready', 'busy', 'draining', 'dead'];
const events: readonly ExecutorEvent[] = ['launched', 'loaded', 'proved', 'taken', 'finished', 'drain', 'died'];

/** Written out a second time on purpose: a change of the table must be meant. */
const legal: Readonly<Record<string, ExecutorState>> = {
  'starting loaded': 'warming',
  'starting drain': 'draining',
  'starting died': 'dead',
  'warming proved': 'ready',
  'warming drain': 'draining',
  'warming died': 'dead',
  'ready taken': 'busy',
  'ready drain': 'draining',
  'ready died': 'dead',
  'busy finished': 'ready',
  'busy drain': 'draining',
  'busy died': 'dead',
  'draining finished': 'draining',
  'draining died': 'dead',
  'dead launched': 'starting',
};

describe('the life of an executor', () => {
  for (const state of states) {
    for (const event of events) {
      const expected = legal[`${state} ${event}`];
      if (expected === undefined) {
        it(`refuses the event ${event} in the state ${state}`, () => {
          expect(() => nextExecutorState(state, event)).toThrow(`${state} cannot take the event ${event}`);
        });
      } else {
        it(`goes from ${state} to ${expected} on ${event}`, () => {
          expect(nextExecutorState(state, event)).toBe(expected);
        });
      }
    }
  }

  it('becomes ready only from warming or from busy', () => {
    const sources = states.filter((state) => Object.values(executorTransitions[state]).includes('ready'));
    expect(sources).toEqual(['warming', 'busy']);
  });
});
