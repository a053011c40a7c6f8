/** Owns what is asked and told of files that hold secrets. */
import { stat } from 'node:fs/promises';

const faults: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'is a folder',
};

/** Why a file could not be read, for a person. */
export function fileProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return faults[code ?? ''] ?? message;
}

const readByOthers = 0o004;

/** Whether any user of the machine can read the file; false where that cannot be told. */
export async function isReadableByAll(path: string): Promise<boolean> {
  try {
    return ((await stat(path)).mode & readByOthers) !== 0;
  } catch {
    return false;
  }
}
