/** Owns how many requests are under way at the same time, first come first served. */
import { onAbort } from './abort.ts';
import { abortErrorOf } from './error.ts';

/** Lets a bounded number of pieces of work run. */
export interface Gate {
  /**
   * Runs `work` when there is room.
   * @throws the signal's reason where it aborts before `work` has begun
   */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** A gate for `maxParallel` pieces of work. */
export function createGate(maxParallel: number): Gate {
  const waiting = new Set<() => void>();
  let running = 0;
  const enter = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      let forget: () => void = () => undefined;
      const start = () => {
        waiting.delete(start);
        forget();
        running += 1;
        resolve();
      };
      const leave = () => {
        waiting.delete(start);
        reject(abortErrorOf(signal));
      };
      if (signal.aborted) leave();
      else if (running < maxParallel) start();
      else {
        waiting.add(start);
        forget = onAbort(signal, leave);
      }
    });
  return {
    async run(work, signal) {
      await enter(signal);
      try {
        return await work();
      } finally {
        running -= 1;
        const [next] = waiting;
        next?.();
      }
    },
  };
}
