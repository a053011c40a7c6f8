/** Owns what Linux says about a process and all that it started: who they are, and the processor time they took. */
import { readdirSync, readFileSync } from 'node:fs';

/** Length of a clock tick in `/proc`. @unit ms */
const tickMs = 10;

/** The process and all that it started, at this moment; none where it is gone. */
export function processTree(pid: number): number[] {
  try {
    // Each thread has the children that it started itself.
    const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')
        .split(' ')
        .filter((child) => child.trim() !== '')
        .map(Number),
    );
    return [pid, ...children.flatMap(processTree)];
  } catch {
    return [];
  }
}

/** Fields of `/proc/<pid>/stat` from the state on; the name before them may hold blanks. */
function statOf(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/**
 * Processor time of a process so far, all of its threads.
 * @throws Error where there is no such process
 * @unit ms
 */
export function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/**
 * Processor time of a process and all that it started, those included that have ended; null where nothing tells.
 * @unit ms
 */
export function treeCpuMs(pid: number): number | null {
  const timesMs = processTree(pid).flatMap((member) => {
    try {
      const fields = statOf(member);
      // What children took that have ended is added to their parent's two last fields.
      return [11, 12, 13, 14].map((field) => Number(fields[field]) * tickMs);
    } catch {
      return [];
    }
  });
  return timesMs.length === 0 ? null : timesMs.reduce((sum, timeMs) => sum + timeMs, 0);
}
