/** Owns finding the executor processes of a served process, and waiting for things that happen outside of the test. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/** Process ids of the living children of `parentPid` that run an executor. */
export function executorPids(parentPid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isExecutorOf(pid, parentPid));
}

function isExecutorOf(pid: number, parentPid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state === 'Z' || Number(parent) !== parentPid) return false;
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('executor/main.js');
  } catch {
    return false;
  }
}

/** True while the process exists and is not a zombie. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z');
  } catch {
    return false;
  }
}

/** Pause between two looks. @unit ms */
const lookEveryMs = 20;

/**
 * Resolves once `condition` holds; looks again and again, because the world outside gives no event.
 * @throws Error that names what was waited for
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`waited ${limitMs} ms in vain: ${what}`);
    await wait(lookEveryMs);
  }
}
