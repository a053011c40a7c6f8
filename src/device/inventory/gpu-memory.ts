/** Owns how much memory of each NVIDIA GPU is taken, asked of the driver's tool and kept for a while. */
import type { Clock } from '../../clock.ts';
import { askSmi } from './ask-smi.ts';
import type { Machine } from './machine.ts';
import type { ToolOutcome } from './run-bounded.ts';

/** Memory of one GPU. */
export interface GpuMemory {
  readonly deviceId: string;
  /** Taken by every process on the machine. @unit bytes */
  readonly usedBytes: number;
  /** @unit bytes */
  readonly totalBytes: number;
}

/** Reads the memory of the GPUs in use; nothing where there is none, and never rejects. */
export type ReadGpuMemory = () => Promise<readonly GpuMemory[]>;

/** Least time between two starts of the tool, however often somebody asks. @unit ms */
export const keptMs = 5_000;
/** Those who ask, scrapers above all, wait no longer. @unit ms */
const timeoutMs = 2_000;
const mebibyte = 1_048_576;
const questions = ['--query-gpu=uuid,memory.used,memory.total', '--format=csv,noheader,nounits'];

/** A GPU in use, by the name that the driver has for it. */
export interface KnownGpu {
  readonly deviceId: string;
  readonly uuid: string;
}

/** The memory of these GPUs in the answer of the tool; those that it does not tell are left out. */
export function memoryInSmi(output: string, gpus: readonly KnownGpu[]): GpuMemory[] {
  const rows = output.split('\n').map((line) => line.split(',').map((cell) => cell.trim()));
  return gpus.flatMap(({ deviceId, uuid }) => {
    const [, used = '', total = ''] = rows.find(([name]) => name === uuid) ?? [];
    if (!/^\d+$/.test(used) || !/^\d+$/.test(total)) return [];
    return [{ deviceId, usedBytes: Number(used) * mebibyte, totalBytes: Number(total) * mebibyte }];
  });
}

/** What a reader works with. */
export interface GpuMemoryParts {
  readonly gpus: readonly KnownGpu[];
  readonly machine: Machine;
  readonly clock: Clock;
  /** Asks the tool; tests bring one of their own. */
  readonly ask?: () => Promise<ToolOutcome>;
}

/** A reader for these GPUs; without any it starts nothing. */
export function createGpuMemoryReader({ gpus, machine, clock, ask }: GpuMemoryParts): ReadGpuMemory {
  const askTool = ask ?? (() => askSmi(machine, questions, timeoutMs));
  let kept: Promise<readonly GpuMemory[]> = Promise.resolve([]);
  let askedAtMs = -Infinity;
  const read = async (): Promise<readonly GpuMemory[]> => {
    const outcome = await askTool();
    return 'output' in outcome ? memoryInSmi(outcome.output, gpus) : [];
  };
  return () => {
    if (gpus.length === 0 || clock.nowMs() - askedAtMs < keptMs) return kept;
    askedAtMs = clock.nowMs();
    kept = read();
    return kept;
  };
}
