/** Owns what a server holds: memory, open handles, processes, files. */
import { readdirSync } from 'node:fs';
import { processTree } from '../../src/bench/processes.ts';
import { memoryOf } from '../bench/process-memory.ts';

/** What is held at one moment. */
export interface Footprint {
  /** @unit MB */
  readonly megabytes: number;
  /** Of the serving process alone. @unit MB */
  readonly serverMegabytes: number;
  readonly handles: number;
  readonly processes: number;
  readonly files: readonly string[];
}

/** Open handles of a process; none where it is gone. */
function handlesOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

/** Every file below folders, as paths. */
export const filesIn = (folders: readonly string[]): string[] =>
  folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => `${parentPath}/${name}`),
  );

/** What the process and all that it started hold now, and the files of its folders. */
export function footprintOf(pid: number, folders: readonly string[]): Footprint {
  const pids = processTree(pid);
  return {
    megabytes: memoryOf(pids).residentMegabytes,
    serverMegabytes: memoryOf([pid]).residentMegabytes,
    handles: pids.reduce((sum, member) => sum + handlesOf(member), 0),
    processes: pids.length,
    files: filesIn(folders),
  };
}
