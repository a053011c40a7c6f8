/** Owns noticing that files have changed: a look at fixed times, because events are lost where folders are replaced. */
import { stat } from 'node:fs/promises';
import type { Clock } from '../clock.ts';

/** Time between two looks. @unit ms */
export const watchIntervalMs = 5000;

/** What is watched, and what happens then. */
export interface FileWatch {
  readonly paths: readonly string[];
  readonly clock: Clock;
  /** Called after a look that found any of the files other than at the look before. */
  readonly onChange: () => Promise<void>;
}

/** Files as they are now: what differs where one was written, replaced, or reached through another link. */
export async function fileVersions(paths: readonly string[]): Promise<string> {
  const versions = await Promise.all(
    paths.map(async (path) => {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
        return [dev, ino, size, mtimeNs, ctimeNs].join(':');
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? 'unknown';
      }
    }),
  );
  return versions.join(' ');
}

/** Watches from what `versions` says the files were, until the returned function is called. */
export function watchFiles({ paths, clock, onChange }: FileWatch, versions: string): () => void {
  let isStopped = false;
  let cancel: () => void = () => undefined;
  let seen = versions;
  const look = async () => {
    const found = await fileVersions(paths);
    if (found !== seen && !isStopped) {
      seen = found;
      await onChange();
    }
    if (!isStopped) lookLater();
  };
  const lookLater = () => {
    cancel = clock.after(watchIntervalMs, () => void look());
  };
  lookLater();
  return () => {
    isStopped = true;
    cancel();
  };
}
