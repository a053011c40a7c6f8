/** Owns where a named model is: in the cache, or there after a download. */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { graphCandidates, readGraph } from '../graph-file.ts';
import type { Precision } from '../manifest.ts';
import { findSnapshot, pathsOf, readRecordedCommit } from './cache.ts';
import { lineProgress } from './progress.ts';
import { pullModel } from './pull.ts';
import type { Hub } from './pull.ts';
import { parseRepository, showRepository } from './repository.ts';
import type { Repository } from './repository.ts';
import { systemPacing } from './retry.ts';

/** How models are looked for. */
export interface LocateOptions {
  readonly hub: Hub;
  /** Never opens a connection. */
  readonly isOffline: boolean;
  readonly wanted: Precision | 'auto';
}

/** The hub as a server uses it: plain lines of progress, the machine's clock. */
export function openHub({
  report,
  ...places
}: Pick<Hub, 'connection' | 'cacheDir'> & { readonly report: (line: string) => void }): Hub {
  return { ...places, pacing: systemPacing, progress: lineProgress(report) };
}

async function sizeOf(path: string): Promise<number | null> {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
}

/** What keeps a snapshot, perhaps another tool's, from being served at this precision; null for nothing. */
export async function missingFrom(
  folder: string,
  wanted: Precision | 'auto',
  maxGraphBytes: number,
): Promise<string | null> {
  for (const name of ['config.json', 'tokenizer.json']) {
    if ((await sizeOf(join(folder, name))) === null) return name;
  }
  const allowed = graphCandidates.filter(({ precision }) => wanted === 'auto' || precision === wanted);
  for (const { path } of allowed) {
    const graphPath = join(folder, path);
    const bytes = await sizeOf(graphPath);
    if (bytes === null) continue;
    const references = bytes <= maxGraphBytes ? (await readGraph(graphPath)).externalFiles : [];
    const weights = await Promise.all(references.map((reference) => sizeOf(join(dirname(graphPath), reference))));
    return references.find((_, index) => weights[index] === null) ?? null;
  }
  return allowed.map(({ path }) => path).join(' or ');
}

function offlineProblem({ hub }: LocateOptions, repository: Repository, missing: string | null): ConfigurationError {
  const name = showRepository(repository);
  const found =
    missing === null
      ? `${name} is not in the cache ${hub.cacheDir}`
      : `${name} in the cache ${hub.cacheDir} lacks ${missing}`;
  return new ConfigurationError([
    `${found}, and nothing is downloaded while --offline or HF_HUB_OFFLINE is set: ` +
      `run "trivec models pull ${name}" where the hub can be reached, or name a folder`,
  ]);
}

async function locate(options: LocateOptions, repository: Repository): Promise<string> {
  const { hub, isOffline, wanted } = options;
  const cached = await findSnapshot(hub.cacheDir, repository);
  const missing = cached === null ? null : await missingFrom(cached, wanted, hub.pacing.limits.maxInspectedGraphBytes);
  if (cached !== null && missing === null) return cached;
  if (isOffline) throw offlineProblem(options, repository, missing);
  // A branch that was resolved once stays at that commit until somebody pulls it.
  const recorded = await readRecordedCommit(pathsOf(hub.cacheDir, repository.id), repository.revision);
  return (await pullModel(hub, { ...repository, revision: recorded ?? repository.revision }, wanted)).folder;
}

/**
 * Gives the folder of a model named `org/name` or `org/name@revision`, null for anything else. A recorded revision
 * that is complete in the cache is used as it is, without asking the hub; a model is looked for once.
 */
export function createLocator(options: LocateOptions): (text: string) => Promise<string | null> {
  const located = new Map<string, Promise<string>>();
  return async (text) => {
    const repository = parseRepository(text);
    if (repository === null) return null;
    const name = showRepository(repository);
    const folder = located.get(name) ?? locate(options, repository);
    located.set(name, folder);
    return folder;
  };
}
