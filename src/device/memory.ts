/** Owns how much memory an executor's process may come to have before it is replaced. */
import { readFileSync } from 'node:fs';
import type { CancelTimer, Clock } from '../clock.ts';

/** The marks that follow from what an executor has once it has proved itself. */
export interface MemoryMarks {
  /** Above it, it is replaced between two runs. @unit bytes */
  readonly recycleBytes: number;
  /** Above it, it is ended at once. @unit bytes */
  readonly endBytes: number;
}

/** What an executor may grow by beyond twice what it needs for its models. @unit bytes */
const freeGrowthBytes = 512 * 1_048_576;
/** What every executor may grow by, whatever the operator allows: an ordinary run takes some of it. @unit bytes */
const leastGrowthBytes = 128 * 1_048_576;

/**
 * The marks of an executor.
 * @param provedBytes what it has once it has proved itself
 * @param maxBytes what the operator allows; 0: what follows from `provedBytes`
 */
export function memoryMarks(provedBytes: number, maxBytes: number): MemoryMarks {
  const recycleBytes =
    maxBytes > 0 ? Math.max(maxBytes, provedBytes + leastGrowthBytes) : 2 * provedBytes + freeGrowthBytes;
  return { recycleBytes, endBytes: 2 * recycleBytes };
}

/** Resident memory of a process; null where the system does not say. */
export type ReadResidentBytes = (pid: number) => number | null;

/** Size of a page as the kernel counts in `statm`. @unit bytes */
const pageBytes = 4096;

/** From `/proc`, so on Linux only. */
export const residentBytesOf: ReadResidentBytes = (pid) => {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    return Number.isFinite(pages) ? pages * pageBytes : null;
  } catch {
    return null;
  }
};

/** What is watched. */
export interface MemoryWatch {
  readonly clock: Clock;
  readonly pid: number | null;
  readonly read: ReadResidentBytes;
  /** @unit ms */
  readonly intervalMs: number;
  /** @unit bytes */
  readonly maxBytes: number;
  /** Called once, then nothing is watched any more. */
  readonly onOver: (bytes: number) => void;
}

/** Looks at a process again and again until it is over the bound, cannot be read, or the watch is cancelled. */
export function watchMemory({ clock, pid, read, intervalMs, maxBytes, onOver }: MemoryWatch): CancelTimer {
  let cancel: CancelTimer = () => undefined;
  const look = () => {
    const bytes = pid === null ? null : read(pid);
    if (bytes === null) return;
    if (bytes > maxBytes) onOver(bytes);
    else cancel = clock.after(intervalMs, look);
  };
  cancel = clock.after(intervalMs, look);
  return () => {
    cancel();
  };
}

/** Bytes as a person reads them in a reason. */
export const showMegabytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MB`;
