/** Owns how executors are placed on a device, and how large their batches are: pure functions of the machine. */
import type { ProviderName } from '../executor/protocol.ts';
import type { BatchLimits } from './budget.ts';

/** Executors and the threads of each. */
export interface Placement {
  readonly executors: number;
  readonly threads: number;
}

/** What an operator can say about it. */
export interface PlacementSettings {
  /** Number of executors on the CPU; 0 lets the cores decide. */
  readonly executors: number;
  /** Number of executors on each GPU. */
  readonly gpuExecutors: number;
}

/** Most executors where the cores decide: each holds its own copy of the models. */
export const maxAutomaticExecutors = 16;

/**
 * On a CPU one executor of one thread for each core, as texts that run side by side on one thread each are the fastest;
 * fewer executors share the cores among them. Never more threads than cores, unless more executors are asked for.
 * On a GPU as many as were asked for: they share its memory, and the thread of each does little but wait.
 */
export function placeExecutors(provider: ProviderName, cores: number, settings: PlacementSettings): Placement {
  if (provider !== 'cpu') return { executors: settings.gpuExecutors, threads: 1 };
  const automatic = Math.max(1, Math.min(cores, maxAutomaticExecutors));
  const executors = settings.executors > 0 ? settings.executors : automatic;
  return { executors, threads: Math.max(1, Math.floor(cores / executors)) };
}

/** How large a batch may be, by where it runs. */
export interface BatchSettings extends BatchLimits {
  readonly maxGpuBatchTokens: number;
  readonly maxGpuBatchItems: number;
}

/** The limits of a provider: a GPU is fast only where it has much to do at a time. */
export function batchLimitsOf(provider: ProviderName, settings: BatchSettings): BatchLimits {
  const { maxBatchTokens, maxBatchItems, maxGpuBatchTokens, maxGpuBatchItems } = settings;
  return provider === 'cpu'
    ? { maxBatchTokens, maxBatchItems }
    : { maxBatchTokens: maxGpuBatchTokens, maxBatchItems: maxGpuBatchItems };
}
