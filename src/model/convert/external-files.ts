/** Owns the check of the files that hold weights outside a graph's file: that they are there, and large enough. */
import { stat } from 'node:fs/promises';
import { ConfigurationError } from '../../errors.ts';
import { fileErrorCode } from '../json-file.ts';
import type { OpenModel } from './open-model.ts';

/** A file with weights, as it lies beside the graph. */
export interface ExternalFile {
  /** As the graph names it. */
  readonly location: string;
  readonly path: string;
}

/** The least size that each file must have to hold every tensor that is said to be in it, by location. */
function neededBytes({ external }: OpenModel): Map<string, { readonly path: string; readonly byteLength: number }> {
  const needed = new Map<string, { readonly path: string; readonly byteLength: number }>();
  for (const { location, path, offset, byteLength } of external.values()) {
    const before = needed.get(location)?.byteLength ?? 0;
    needed.set(location, { path, byteLength: Math.max(before, offset + byteLength) });
  }
  return needed;
}

async function checkFile(path: string, byteLength: number): Promise<void> {
  try {
    const { size } = await stat(path);
    if (size >= byteLength) return;
    throw new ConfigurationError([
      `${path}: has ${String(size)} bytes, the graph's weights need at least ${String(byteLength)}: ` +
        'cut off or of another model, get it again',
    ]);
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    const reason = fileErrorCode(error) === 'ENOENT' ? 'is missing' : `cannot be read (${fileErrorCode(error)})`;
    throw new ConfigurationError([`${path}: ${reason}; the graph keeps weights in it`]);
  }
}

/**
 * The files with weights outside the graph's own, each there and large enough.
 * @throws ConfigurationError that names the file which is missing or too short
 */
export async function findExternalFiles(open: OpenModel): Promise<ExternalFile[]> {
  const files: ExternalFile[] = [];
  for (const [location, { path, byteLength }] of neededBytes(open)) {
    await checkFile(path, byteLength);
    files.push({ location, path });
  }
  return files;
}
