/** Owns what a signal of the shell does to a command that runs for long: the first one asks it to end, the second ends it. */

/** A command that can be asked to end. */
export interface Interruption {
  /** Aborts at the first signal. */
  readonly signal: AbortSignal;
  /** Signals do what they did before. */
  end(): void;
}

/** Listens to signals; the second one ends the process at once, and with it what it started. */
export function listenForInterruption(names: readonly NodeJS.Signals[], exitCode: number): Interruption {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(exitCode);
    controller.abort();
  };
  for (const name of names) process.on(name, interrupt);
  return {
    signal: controller.signal,
    end() {
      for (const name of names) process.off(name, interrupt);
    },
  };
}
