/** Owns the lock of an output: one run at a time, whatever became of the one before. */
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { BulkFailure } from '../row.ts';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process began, as the system counts; null where it does not say. */
  readonly started: string | null;
}

/** Times that a lock which changes while it is looked at is looked at again. */
const maxLooks = 20;
/** Codes by which file systems say that they have no links. */
const linklessCodes: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL']);

/** Takes the lock, and gives what gives it back. @throws BulkFailure where a run holds it */
export async function takeLock(path: string): Promise<() => void> {
  const id = randomUUID();
  const own = JSON.stringify({ pid: process.pid, host: hostname(), started: startOf(process.pid), id });
  // Written before it is the lock: nobody ever reads half of one.
  const written = `${path}.${id}`;
  await writeFile(written, own, { flag: 'wx' });
  try {
    await takeWith(written, path);
  } finally {
    await rm(written, { force: true });
  }
  return () => {
    rmSync(path, { force: true });
  };
}

async function takeWith(written: string, path: string): Promise<void> {
  for (let looks = 0; looks < maxLooks; looks += 1) {
    if (await createAs(written, path)) return;
    const found = await readFile(path, 'utf8').catch(() => null);
    if (found === null) continue;
    refuseIfHeld(found, path);
    if (await takeOver(written, path, found)) return;
  }
  throw new BulkFailure(`another run has just begun to write this output; its lock is ${path}`);
}

/** Makes the lock, complete, where there is none; whether it did. */
async function createAs(written: string, path: string): Promise<boolean> {
  try {
    await link(written, path);
    return true;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    if (!linklessCodes.has(code)) throw error;
  }
  try {
    await writeFile(path, await readFile(written), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Puts a lock in the place of one that was left behind; whether it did. Who may is decided by a lock of its own that is
 * named after what was found: whoever was slower finds another lock by then, and must not take that one away.
 */
async function takeOver(written: string, path: string, found: string): Promise<boolean> {
  const name = createHash('sha256').update(found).digest('hex').slice(0, 12);
  const giveBack = await takeLock(`${path}.${name}`);
  try {
    const now = await readFile(path, 'utf8').catch(() => null);
    if (now !== found) return false;
    await rename(written, path);
    return true;
  } finally {
    giveBack();
  }
}

function refuseIfHeld(text: string, path: string): void {
  let holder: Holder;
  try {
    holder = JSON.parse(text) as Holder;
  } catch {
    // Of a machine that went down before its disk had it.
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
  // One that has ended and that nobody has asked about yet.
  if (statOf(pid)?.[0] === 'Z') return false;
  // A number that another process has got since.
  return started === null || startOf(pid) === started;
}

const startOf = (pid: number): string | null => statOf(pid)?.[19] ?? null;

/** What the system says of a process, from its state on; null where it says nothing. */
function statOf(pid: number): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}
