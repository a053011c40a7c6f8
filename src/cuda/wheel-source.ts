/** Owns where wheels come from: a Python package index, or a folder that someone filled. */
import { rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { fileErrorCode } from '../model/json-file.ts';
import { feedFile, isIntact, startHash } from '../model/hub/file-hash.ts';
import { createHttpClient } from '../model/hub/http-client.ts';
import type { HttpConnection } from '../model/hub/http-client.ts';
import type { PullProgress } from '../model/hub/progress.ts';
import { withRetries } from '../model/hub/retry.ts';
import type { Pacing } from '../model/hub/retry.ts';
import { incompletePathOf, transferFile } from '../model/hub/transfer.ts';
import { findWheel, indexFaultOf, indexVariable } from './index-page.ts';
import type { Wheel } from './wheels.ts';

/** A place that wheels come from. */
export interface WheelSource {
  /** Refuses at once what cannot be brought. @throws ConfigurationError naming every such wheel */
  check(wheels: readonly Wheel[]): Promise<void>;
  /** Bytes that bringing a wheel will add to the cache. @unit bytes */
  missingBytes(wheel: Wheel): Promise<number>;
  /** The path of a wheel, which is there, whole and proved. @throws ConfigurationError */
  bring(wheel: Wheel): Promise<string>;
  /** Gives back what bringing a wheel took of the cache. */
  discard(wheel: Wheel): Promise<void>;
  close(): void;
}

const fileOf = ({ file, sizeBytes, sha256 }: Wheel) => ({ path: file, sizeBytes, hash: sha256 });

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** Wheels from an index, downloaded into a folder of the cache. */
export function indexSource(
  connection: HttpConnection,
  folder: string,
  pacing: Pacing,
  progress: PullProgress,
): WheelSource {
  const client = createHttpClient(connection, pacing.clock, pacing.limits);
  const onNote = (message: string): void => {
    progress.onNote(message);
  };
  const pathOf = ({ file }: Wheel): string => join(folder, file);
  return {
    check: async () => undefined,
    async missingBytes(wheel) {
      const path = pathOf(wheel);
      const presentBytes = Math.max(await sizeOf(path), await sizeOf(incompletePathOf(path)));
      return Math.max(0, wheel.sizeBytes - presentBytes);
    },
    async bring(wheel) {
      const [path, file] = [pathOf(wheel), fileOf(wheel)];
      if (await isIntact(path, file)) return path;
      const url = await withRetries(wheel.file, pacing, onNote, () =>
        findWheel(client, connection.endpoint, wheel, pacing.limits),
      );
      progress.onStart(file, await sizeOf(incompletePathOf(path)));
      const open = (headers: Readonly<Record<string, string>>) => client.get(url, indexFaultOf, headers);
      await transferFile({ file, path, open, addressVariable: indexVariable }, { pacing, progress });
      progress.onDone(file);
      return path;
    },
    discard: (wheel) => rm(pathOf(wheel), { force: true }),
    close: () => {
      client.close();
    },
  };
}

async function folderProblem(path: string, wheel: Wheel): Promise<string | null> {
  try {
    const { size } = await stat(path);
    return size === wheel.sizeBytes
      ? null
      : `${path}: has ${String(size)} bytes where ${String(wheel.sizeBytes)} are expected`;
  } catch (error) {
    const code = fileErrorCode(error);
    return code === 'ENOENT'
      ? `${path}: is not there; it is a file of the project ${wheel.project} ${wheel.version} on the Python package index`
      : `${path}: cannot be read (${code})`;
  }
}

/** Wheels that lie in a folder, which is left as it is. */
export function folderSource(from: string): WheelSource {
  const folder = resolve(from);
  return {
    async check(wheels) {
      const found = await Promise.all(wheels.map((wheel) => folderProblem(join(folder, wheel.file), wheel)));
      const problems = found.filter((problem) => problem !== null);
      if (problems.length > 0) throw new ConfigurationError(problems);
    },
    missingBytes: async () => 0,
    async bring(wheel) {
      const path = join(folder, wheel.file);
      const found = (await feedFile(startHash(fileOf(wheel)), path)).digest('hex');
      if (found === wheel.sha256) return path;
      throw new ConfigurationError([`${path}: expected sha256 ${wheel.sha256}, found ${found}`]);
    },
    discard: async () => undefined,
    close: () => undefined,
  };
}
