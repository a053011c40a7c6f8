/** Owns how the cores of a machine are shared out to executors. */

/** Executors and the threads of each. */
export interface Placement {
  readonly executors: number;
  readonly threads: number;
}

/** What an operator can say about it. */
export interface PlacementSettings {
  /** Number of executors; 0 lets the cores decide. */
  readonly executors: number;
  /** Most executors where the cores decide: each holds its own copy of the models. */
  readonly maxExecutors: number;
}

/**
 * One executor of one thread for each core, as texts that run side by side on one thread each are the fastest;
 * fewer executors share the cores among them. Never more threads than cores, unless more executors are asked for.
 */
export function placeOnCpu(cores: number, settings: PlacementSettings): Placement {
  const automatic = Math.max(1, Math.min(cores, settings.maxExecutors));
  const executors = settings.executors > 0 ? settings.executors : automatic;
  return { executors, threads: Math.max(1, Math.floor(cores / executors)) };
}
