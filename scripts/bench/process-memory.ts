/** Owns the memory that Linux says processes hold. */
import { readFileSync } from 'node:fs';

const bytesPerKibibyte = 1024;
const bytesPerMegabyte = 1_000_000;

/** Memory of processes. @unit MB of 1,000,000 bytes */
export interface ProcessMemory {
  /** Resident, pages that are shared counted in each. */
  readonly residentMegabytes: number;
  /** Resident, pages that are shared counted once. */
  readonly proportionalMegabytes: number;
}

/** Memory of the processes together. */
export function memoryOf(pids: readonly number[]): ProcessMemory {
  const sum = (name: string) =>
    pids.reduce((total, pid) => {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      return total + Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'mu').exec(rollup)?.[1]);
    }, 0);
  const toMegabytes = (kibibytes: number) => (kibibytes * bytesPerKibibyte) / bytesPerMegabyte;
  return { residentMegabytes: toMegabytes(sum('Rss')), proportionalMegabytes: toMegabytes(sum('Pss')) };
}
