/** Owns the lock of an output: one run at a time, whatever became of the one before. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { BulkFailure } from '../row.ts';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process began, as the system counts; null where it does not say. */
  readonly started: string | null;
}

/** Takes the lock, and gives what gives it back. @throws BulkFailure where a run holds it */
export async function takeLock(path: string): Promise<() => void> {
  const own: Holder = { pid: process.pid, host: hostname(), started: startOf(process.pid) };
  for (let attempt = 0; attempt < 2; attempt += 1) {
    try {
      await writeFile(path, JSON.stringify(own), { flag: 'wx' });
      return () => {
        rmSync(path, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const text = await readFile(path, 'utf8').catch(() => '');
    refuseIfHeld(text, path);
    // Renamed first: of several who find it left behind only one gets it.
    const left = `${path}.${String(process.pid)}`;
    try {
      renameSync(path, left);
    } catch {
      continue;
    }
    await rm(left, { force: true });
  }
  throw new BulkFailure(`another run has just begun to write this output; its lock is ${path}`);
}

function refuseIfHeld(text: string, path: string): void {
  let holder: Holder;
  try {
    holder = JSON.parse(text) as Holder;
  } catch {
    // Ended between making the file and writing it.
    return;
  }
  if (holder.host !== hostname()) {
    throw new BulkFailure(`${holder.host} writes this output; if it does not any more, remove ${path}`);
  }
  if (isAlive(holder)) throw new BulkFailure(`process ${String(holder.pid)} writes this output; its lock is ${path}`);
}

function isAlive({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  // A number that another process has got since.
  return started === null || startOf(pid) === started;
}

function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}
