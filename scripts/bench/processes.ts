/** Owns what Linux says about a process and its children: time spent and memory held. */
import { readFileSync } from 'node:fs';

/** Length of a clock tick in `/proc`. @unit ms */
const tickMs = 10;
const bytesPerKibibyte = 1024;
const bytesPerMegabyte = 1_000_000;

/** The process and all that it started, at this moment. */
export function processTree(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return [
    pid,
    ...children
      .split(' ')
      .filter((child) => child !== '')
      .flatMap((child) => processTree(Number(child))),
  ];
}

/** Processor time of a process so far, all of its threads. @unit ms */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name may hold blanks; what follows its closing bracket does not.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

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
