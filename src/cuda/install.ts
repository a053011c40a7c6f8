/** Owns the installation of CUDA's libraries: from wheels to a complete folder in the cache. */
import { mkdir, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { fileErrorCode } from '../model/json-file.ts';
import { isIntact } from '../model/hub/file-hash.ts';
import { withLock } from '../model/hub/lock.ts';
import { showBytes } from '../model/hub/progress.ts';
import type { PullProgress } from '../model/hub/progress.ts';
import type { Pacing } from '../model/hub/retry.ts';
import { setFolderOf } from './library-environment.ts';
import { unpackEntry } from './unpack.ts';
import type { WheelSource } from './wheel-source.ts';
import type { Wheel, WheelEntry } from './wheels.ts';

/** Everything that an installation works with. */
export interface CudaInstallation {
  readonly cacheDir: string;
  readonly wheels: readonly Wheel[];
  readonly source: WheelSource;
  readonly pacing: Pacing;
  readonly progress: PullProgress;
  /** Free bytes of the disk that a folder is on, for this user. */
  readonly freeBytes: (folder: string) => Promise<number>;
}

/** What is still to be done for a wheel. */
export interface WheelStep {
  readonly wheel: Wheel;
  readonly missingEntries: readonly WheelEntry[];
}

/** Bytes that are left free. @unit bytes */
const reserveBytes = 67_108_864;

/** Folder that wheels are downloaded into. */
export const downloadFolderOf = (cacheDir: string): string => join(cacheDir, 'cuda', 'wheels');

/** Free bytes by the file system's own account. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/**
 * The most that an installation takes of the disk at a time: what was unpacked by then, and the one wheel that is here.
 * @unit bytes
 */
export function neededBytes(steps: readonly { readonly wheelBytes: number; readonly entryBytes: number }[]): number {
  let unpackedBytes = 0;
  let mostBytes = 0;
  for (const { wheelBytes, entryBytes } of steps) {
    unpackedBytes += entryBytes;
    mostBytes = Math.max(mostBytes, unpackedBytes + wheelBytes);
  }
  return mostBytes;
}

async function missingEntriesOf({ entries }: Wheel, folder: string): Promise<WheelEntry[]> {
  const missing: WheelEntry[] = [];
  for (const entry of entries) {
    const { name, sizeBytes, sha256 } = entry;
    if (!(await isIntact(join(folder, name), { path: name, sizeBytes, hash: sha256 }))) missing.push(entry);
  }
  return missing;
}

async function stepsFor(wheels: readonly Wheel[], folder: string): Promise<WheelStep[]> {
  const steps: WheelStep[] = [];
  for (const wheel of wheels) {
    const missingEntries = await missingEntriesOf(wheel, folder);
    if (missingEntries.length > 0) steps.push({ wheel, missingEntries });
  }
  return steps;
}

async function requireSpace({ cacheDir, source, freeBytes }: CudaInstallation, steps: readonly WheelStep[]) {
  const sizes: { wheelBytes: number; entryBytes: number }[] = [];
  for (const { wheel, missingEntries } of steps) {
    const entryBytes = missingEntries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    sizes.push({ wheelBytes: await source.missingBytes(wheel), entryBytes });
  }
  const needed = neededBytes(sizes) + reserveBytes;
  const free = await freeBytes(cacheDir);
  if (free >= needed) return;
  throw new ConfigurationError([
    `${cacheDir}: ${showBytes(needed)} are needed and ${showBytes(free)} are free: make room, or give a folder on ` +
      'another disk with --cache-dir',
  ]);
}

async function takeStep({ source, progress }: CudaInstallation, folder: string, step: WheelStep): Promise<void> {
  const wheelPath = await source.bring(step.wheel);
  for (const entry of step.missingEntries) {
    const file = { path: `${entry.name} out of its wheel`, sizeBytes: entry.sizeBytes };
    progress.onStart(file, 0);
    await unpackEntry(wheelPath, entry, join(folder, entry.name), (doneBytes) => {
      progress.onBytes(file, doneBytes);
    });
    progress.onDone(file);
  }
  await source.discard(step.wheel);
}

async function fill(installation: CudaInstallation, folder: string): Promise<void> {
  const { cacheDir, wheels, source } = installation;
  const incompleteFolder = `${folder}.incomplete`;
  await mkdir(incompleteFolder, { recursive: true });
  // A set that was complete and is damaged: what is intact of it is kept.
  await rename(folder, incompleteFolder).catch(async (error: unknown) => {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(fileErrorCode(error))) throw error;
    await rm(folder, { recursive: true, force: true });
  });
  const steps = await stepsFor(wheels, incompleteFolder);
  await source.check(steps.map(({ wheel }) => wheel));
  await requireSpace(installation, steps);
  for (const step of steps) await takeStep(installation, incompleteFolder, step);
  await rm(downloadFolderOf(cacheDir), { recursive: true, force: true });
  await rename(incompleteFolder, folder);
}

function asCacheProblem(error: unknown, cacheDir: string): unknown {
  if (!(error instanceof Error && 'syscall' in error)) return error;
  const code = fileErrorCode(error);
  const remedy =
    code === 'ENOSPC' ? 'make room, or give another folder with --cache-dir' : 'give one that can be with --cache-dir';
  return new ConfigurationError([`${cacheDir}: cannot be written (${code}); ${remedy}`]);
}

/** Whether every file of the set is there, byte for byte. */
export async function isCudaInstalled(cacheDir: string, wheels: readonly Wheel[]): Promise<boolean> {
  return (await stepsFor(wheels, setFolderOf(cacheDir, wheels))).length === 0;
}

/**
 * The folder with the whole set, each file proved by its sha256. Nothing is asked for and nothing written where it is
 * there already; what an interrupted installation left is used. The folder has its name only when it is complete.
 * @throws ConfigurationError that says what is wrong and what to do
 */
export async function installCuda(installation: CudaInstallation): Promise<string> {
  const { cacheDir, wheels, pacing, progress } = installation;
  const folder = setFolderOf(cacheDir, wheels);
  const onNote = (message: string): void => {
    progress.onNote(message);
  };
  try {
    if (await isCudaInstalled(cacheDir, wheels)) return folder;
    await withLock(join(cacheDir, 'cuda', 'install.lock'), pacing, onNote, async () => {
      if (!(await isCudaInstalled(cacheDir, wheels))) await fill(installation, folder);
    });
    return folder;
  } catch (error) {
    throw asCacheProblem(error, cacheDir);
  }
}
