/** Owns a pull: from a name to a complete snapshot in the cache. */
import { stat } from 'node:fs/promises';
import { ConfigurationError } from '../../errors.ts';
import { readGraph } from '../graph-file.ts';
import { fileErrorCode } from '../json-file.ts';
import { linkFile, pathsOf, recordCommit } from './cache.ts';
import type { RepositoryPaths } from './cache.ts';
import { companionsByName, companionsByReference, describingFilesOf, graphFilesOf } from './choose-files.ts';
import type { WantedPrecision } from './choose-files.ts';
import { createHubClient } from './client.ts';
import type { HubClient, HubConnection } from './client.ts';
import { isIntact } from './file-hash.ts';
import type { HubFile } from './file-hash.ts';
import { fileUrl, readCommit, readFiles } from './listing.ts';
import { withLock } from './lock.ts';
import type { PullProgress } from './progress.ts';
import { isCommit, showRepository } from './repository.ts';
import type { Repository } from './repository.ts';
import { withRetries } from './retry.ts';
import type { Pacing } from './retry.ts';
import { incompletePathOf, transferFile } from './transfer.ts';

/** The hub, and the cache that its models come into. */
export interface Hub {
  readonly connection: HubConnection;
  readonly cacheDir: string;
  readonly pacing: Pacing;
  readonly progress: PullProgress;
}

/** A model that is complete in the cache. */
export interface PulledModel {
  /** Looks like the repository, with the files that a server needs. */
  readonly folder: string;
  readonly commit: string;
}

/** Everything that one pull works with. */
interface Pull extends Hub {
  readonly client: HubClient;
  readonly repository: Repository;
  readonly commit: string;
  readonly paths: RepositoryPaths;
  /** What the repository has. */
  readonly files: readonly HubFile[];
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

async function fetchFile(pull: Pull, file: HubFile): Promise<void> {
  const path = pull.paths.blob(file);
  // A damaged file in the cache is found here, so that pulling again is always the remedy.
  if (await isIntact(path, file)) return;
  const { client, repository, commit, progress } = pull;
  progress.onStart(file, await sizeOf(incompletePathOf(path)));
  await transferFile({ file, url: fileUrl(client, repository, commit, file), repository, path }, pull);
  progress.onDone(file);
}

/** Gets a graph file's weight files, the graph being there already. */
async function fetchCompanions(pull: Pull, graph: HubFile): Promise<HubFile[]> {
  const isInspected = graph.sizeBytes <= pull.pacing.limits.maxInspectedGraphBytes;
  const references = isInspected ? (await readGraph(pull.paths.blob(graph))).externalFiles : [];
  const companions = [...companionsByName(pull.files, graph), ...companionsByReference(pull.files, graph, references)];
  const unique = [...new Set(companions)];
  for (const file of unique) await fetchFile(pull, file);
  return unique;
}

/** Gets all files, and only then lets the snapshot show them, the graphs last: where a graph is, all of it is. */
async function fillSnapshot(pull: Pull, wanted: WantedPrecision): Promise<void> {
  const { paths, commit, repository, files } = pull;
  const graphs = graphFilesOf(files, repository, wanted);
  const described = describingFilesOf(files);
  for (const file of [...described, ...graphs]) await fetchFile(pull, file);
  const companions: HubFile[] = [];
  for (const graph of graphs) companions.push(...(await fetchCompanions(pull, graph)));
  for (const file of [...described, ...companions, ...graphs]) await linkFile(paths, commit, file);
  await recordCommit(paths, repository.revision, commit);
}

/** A file system's refusal, said with the folder that it concerns. */
function asCacheProblem(error: unknown, cacheDir: string): unknown {
  const isOfFiles = error instanceof Error && 'syscall' in error;
  if (!isOfFiles) return error;
  const code = fileErrorCode(error);
  const remedy =
    code === 'ENOSPC' ? 'make room, or set HF_HUB_CACHE' : 'set HF_HUB_CACHE to a folder that can be written';
  return new ConfigurationError([`${cacheDir}: cannot be written (${code}); ${remedy}`]);
}

async function pullWith(
  client: HubClient,
  hub: Hub,
  repository: Repository,
  wanted: WantedPrecision,
): Promise<PulledModel> {
  const { cacheDir, pacing, progress } = hub;
  const name = showRepository(repository);
  const onNote = (message: string): void => {
    progress.onNote(message);
  };
  const paths = pathsOf(cacheDir, repository.id);
  return withLock(paths.lock, pacing, onNote, async () => {
    const commit = isCommit(repository.revision)
      ? repository.revision
      : await withRetries(name, pacing, onNote, () => readCommit(client, repository, pacing.limits));
    const files = await withRetries(name, pacing, onNote, () => readFiles(client, repository, commit, pacing.limits));
    await fillSnapshot({ ...hub, client, repository, commit, paths, files }, wanted);
    return { folder: paths.snapshot(commit), commit };
  });
}

/**
 * The model, complete in the cache at the commit that its revision is now. Files that are there already and whole
 * are not downloaded again.
 * @throws ConfigurationError that says what is wrong and what to do
 */
export async function pullModel(hub: Hub, repository: Repository, wanted: WantedPrecision): Promise<PulledModel> {
  const client = createHubClient(hub.connection, hub.pacing.clock, hub.pacing.limits);
  try {
    return await pullWith(client, hub, repository, wanted);
  } catch (error) {
    throw asCacheProblem(error, hub.cacheDir);
  } finally {
    client.close();
  }
}
