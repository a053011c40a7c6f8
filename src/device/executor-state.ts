/** Owns the life of an executor: every state, every step between two of them, and nothing else. */
import type { ExecutorState } from './pool.ts';

/** What can happen to an executor. */
export type ExecutorEvent = 'launched' | 'loaded' | 'proved' | 'taken' | 'finished' | 'drain' | 'died';

/** The whole table: an event that a state does not list must not happen there. */
export const executorTransitions: Readonly<
  Record<ExecutorState, Readonly<Partial<Record<ExecutorEvent, ExecutorState>>>>
> = {
  starting: { loaded: 'warming', drain: 'draining', died: 'dead' },
  warming: { proved: 'ready', drain: 'draining', died: 'dead' },
  ready: { taken: 'busy', drain: 'draining', died: 'dead' },
  busy: { finished: 'ready', drain: 'draining', died: 'dead' },
  draining: { finished: 'draining', died: 'dead' },
  dead: { launched: 'starting' },
};

/**
 * The state after `event`.
 * @throws Error where the table has no such step: that is a bug
 */
export function nextExecutorState(state: ExecutorState, event: ExecutorEvent): ExecutorState {
  const next = executorTransitions[state][event];
  if (next === undefined) throw new Error(`An executor that is ${state} cannot take the event ${event}.`);
  return next;
}
