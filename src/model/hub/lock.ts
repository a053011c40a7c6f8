/** Owns that one process at a time downloads the same files, on one machine or on several that share a cache. */
import { randomUUID } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { mkdir, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../../clock.ts';
import { ConfigurationError } from '../../errors.ts';
import { fileErrorCode } from '../json-file.ts';
import { wait } from './retry.ts';
import type { Pacing } from './retry.ts';

const ownerSchema = z.object({ id: z.string(), pid: z.int().positive(), place: z.string() });
type Owner = z.infer<typeof ownerSchema>;

/** A lock as it was found. */
interface SeenLock {
  /** null where the file is not complete, or of another program. */
  readonly owner: Owner | null;
  /** Changes with every owner and every sign of life. */
  readonly mark: string;
}

/** Where process ids mean the same: the machine and, in containers, the process namespace. */
export function processPlace(): string {
  try {
    return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return fileErrorCode(error) === 'EPERM';
  }
}

/** Whether the owner has surely ended; one at another place is judged by its signs of life only. */
const hasEnded = (owner: Owner | null): boolean => owner?.place === processPlace() && !isAlive(owner.pid);

async function create(path: string, content: string): Promise<boolean> {
  try {
    const handle = await open(path, 'wx', 0o644);
    await handle.writeFile(content).finally(() => handle.close());
    return true;
  } catch (error) {
    if (fileErrorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function parseOwner(text: string): Owner | null {
  try {
    return ownerSchema.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

/** The lock as it is; null where there is none any more. */
async function look(path: string): Promise<SeenLock | null> {
  try {
    const [text, { mtimeMs }] = [await readFile(path, 'utf8'), await stat(path)];
    return { owner: parseOwner(text), mark: `${text} ${String(mtimeMs)}` };
  } catch (error) {
    if (fileErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

/** Whether the lock of a dead owner could be removed. The guard lets one process at a time do so. */
async function bury(path: string, dead: SeenLock): Promise<boolean> {
  const guardPath = `${path}.takeover`;
  if (!(await create(guardPath, ''))) return false;
  try {
    if ((await look(path))?.mark !== dead.mark) return false;
    await rm(path, { force: true });
    return true;
  } finally {
    await rm(guardPath, { force: true });
  }
}

/** Follows one file for as long as it does not change. */
function createVigil(clock: Clock) {
  let mark: string | null = null;
  let sinceMs = 0;
  return {
    /** Time since the file last changed, by this process's own clock. */
    stillMs(seen: SeenLock): number {
      if (seen.mark !== mark) {
        mark = seen.mark;
        sinceMs = clock.nowMs();
      }
      return clock.nowMs() - sinceMs;
    },
  };
}

async function acquire(
  path: string,
  owner: Owner,
  { clock, limits }: Pacing,
  onNote: (message: string) => void,
): Promise<void> {
  const startMs = clock.nowMs();
  const lockVigil = createVigil(clock);
  const guardVigil = createVigil(clock);
  let isNoted = false;
  while (!(await create(path, JSON.stringify(owner)))) {
    const seen = await look(path);
    if (seen === null) continue;
    const isDead = hasEnded(seen.owner) || lockVigil.stillMs(seen) >= limits.ownerDeadMs;
    if (isDead && (await bury(path, seen))) continue;
    const guard = isDead ? await look(`${path}.takeover`) : null;
    // Its holder has died within the few operations that it guards.
    if (guard !== null && guardVigil.stillMs(guard) >= limits.ownerDeadMs)
      await rm(`${path}.takeover`, { force: true });
    if (clock.nowMs() - startMs >= limits.maxLockWaitMs) {
      throw new ConfigurationError([
        `${path}: another process has been downloading for ${String(limits.maxLockWaitMs / 60_000)} min; ` +
          'end it, or remove this file if there is none',
      ]);
    }
    if (!isNoted) onNote(`waiting for process ${String(seen.owner?.pid ?? '')}, which downloads the same files`);
    isNoted = true;
    await wait(clock, limits.lockPollMs);
  }
}

/** Shows that the owner lives, again and again, until the returned function is called. */
function beat(path: string, { clock, limits }: Pacing): () => void {
  let cancel: () => void;
  const schedule = (): void => {
    cancel = clock.after(limits.heartbeatMs, () => {
      const now = new Date();
      // A lock that is gone was taken for dead; every file is proved before it counts, so work goes on.
      utimes(path, now, now).catch(() => undefined);
      schedule();
    });
  };
  schedule();
  return () => {
    cancel();
  };
}

/**
 * What `run` gives, which runs while no other process holds the lock.
 * @throws ConfigurationError where another one holds it for too long
 */
export async function withLock<Result>(
  path: string,
  pacing: Pacing,
  onNote: (message: string) => void,
  run: () => Promise<Result>,
): Promise<Result> {
  await mkdir(dirname(path), { recursive: true });
  const owner: Owner = { id: randomUUID(), pid: process.pid, place: processPlace() };
  await acquire(path, owner, pacing, onNote);
  const stopBeating = beat(path, pacing);
  try {
    return await run();
  } finally {
    stopBeating();
    if ((await look(path))?.owner?.id === owner.id) await rm(path, { force: true });
  }
}
