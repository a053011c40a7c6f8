/** Owns a pull: from a name to a complete snapshot in the cache. */
import { stat } from 'node:fs/promises';
import { ConfigurationError } from '../../errors.ts';
import type { GraphDescription } from '../../kernels/onnx/read.ts';
import { findCatalogEntry, plainEntry } from '../catalog.ts';
import { describeConverted } from '../convert/describe.ts';
import { thisCpu } from '../graph-variant.ts';
import type { DeviceAbilities } from '../graph-variant.ts';
import { fileErrorCode } from '../json-file.ts';
import { linkFile, pathsOf, readRecordedCommit, recordCommit } from './cache.ts';
import type { RepositoryPaths } from './cache.ts';
import { companionsByName, companionsByReference, describingFilesOf, graphFilesOf } from './choose-files.ts';
import type { GraphFiles, WantedPrecision } from './choose-files.ts';
import { createHubClient } from './client.ts';
import type { HubClient, HubConnection } from './client.ts';
import { isIntact } from './file-hash.ts';
import type { HubFile } from './file-hash.ts';
import { layerFilesOf } from './layer-files.ts';
import { fileUrl, readCommit, readFiles } from './listing.ts';
import { withLock } from './lock.ts';
import type { PullProgress } from './progress.ts';
import { defaultRevision, isCommit, showRepository } from './repository.ts';
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
  /** Where its graphs are; another folder where they come from another repository. */
  readonly graphFolder: string;
}

/** What a pull may be told besides its name. */
export interface PullOptions {
  /** Where the model will run; without it, on this machine's CPU. */
  readonly device?: DeviceAbilities;
  /** A branch that was resolved once stays at that commit. */
  readonly isPinned?: boolean;
}

/** What one repository is to give. */
interface FilesToGet {
  readonly described: readonly HubFile[];
  readonly graphs: readonly HubFile[];
}

/** Decides by a repository's listing what it is to give. */
type ChooseFiles = (files: readonly HubFile[]) => FilesToGet;

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
  const url = fileUrl(client, repository, commit, file);
  const open = (headers: Readonly<Record<string, string>>) => client.get(url, repository, headers);
  await transferFile({ file, path, open, addressVariable: 'HF_ENDPOINT' }, pull);
  progress.onDone(file);
}

/** What a graph says about itself, and the weight files that it needs, which are here afterwards. */
async function fetchCompanions(pull: Pull, file: HubFile): Promise<{ graph: GraphDescription; companions: HubFile[] }> {
  const graph = describeConverted(pull.paths.blob(file), []);
  const all = [...companionsByName(pull.files, file), ...companionsByReference(pull.files, file, graph.externalFiles)];
  const companions = [...new Set(all)];
  for (const companion of companions) await fetchFile(pull, companion);
  return { graph, companions };
}

/** Gets all files, and only then lets the snapshot show them, the graphs last: where a graph is, all of it is. */
async function fillSnapshot(pull: Pull, { described, graphs }: FilesToGet): Promise<void> {
  const { paths, commit, repository, files } = pull;
  for (const file of [...described, ...graphs]) await fetchFile(pull, file);
  const fetched: { graph: GraphDescription; companions: HubFile[] }[] = [];
  for (const file of graphs) fetched.push(await fetchCompanions(pull, file));
  const companions = fetched.flatMap((one) => one.companions);
  const config = described.find(({ path }) => path === 'config.json');
  const descriptions = fetched.map(({ graph }) => graph);
  const layers = config === undefined ? [] : await layerFilesOf(files, paths.blob(config), descriptions);
  for (const file of layers) await fetchFile(pull, file);
  for (const file of [...described, ...layers, ...companions, ...graphs]) await linkFile(paths, commit, file);
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

interface Pulled {
  readonly folder: string;
  readonly commit: string;
  readonly hasGraphs: boolean;
}

async function pullRepository(
  client: HubClient,
  hub: Hub,
  { id, revision }: Repository,
  { isPinned = false }: PullOptions,
  choose: ChooseFiles,
): Promise<Pulled> {
  const { cacheDir, pacing, progress } = hub;
  const onNote = (message: string): void => {
    progress.onNote(message);
  };
  const paths = pathsOf(cacheDir, id);
  return withLock(paths.lock, pacing, onNote, async () => {
    const recorded = isPinned ? await readRecordedCommit(paths, revision) : null;
    const repository = { id, revision: recorded ?? revision };
    const name = showRepository(repository);
    const commit = isCommit(repository.revision)
      ? repository.revision
      : await withRetries(name, pacing, onNote, () => readCommit(client, repository, pacing.limits));
    const files = await withRetries(name, pacing, onNote, () => readFiles(client, repository, commit, pacing.limits));
    const chosen = choose(files);
    await fillSnapshot({ ...hub, client, repository, commit, paths, files }, chosen);
    return { folder: paths.snapshot(commit), commit, hasGraphs: chosen.graphs.length > 0 };
  });
}

function requireGraphs(found: GraphFiles, repository: Repository): readonly HubFile[] {
  if ('graphs' in found) return found.graphs;
  throw new ConfigurationError([`${showRepository(repository)}: ${found.problem}`]);
}

/** The model's own repository, and the one of its graphs where it has none that can be served. */
async function pullAll(
  client: HubClient,
  hub: Hub,
  repository: Repository,
  wanted: WantedPrecision,
  options: PullOptions,
): Promise<PulledModel> {
  const { graphRepository, graphPath } = (await findCatalogEntry(repository.id)) ?? plainEntry;
  const choice = { wanted, device: options.device ?? thisCpu, ownPath: graphPath };
  const { hasGraphs, ...own } = await pullRepository(client, hub, repository, options, (files) => {
    const found = graphFilesOf(files, choice);
    const mayLack = graphRepository !== null && 'problem' in found;
    return { described: describingFilesOf(files), graphs: mayLack ? [] : requireGraphs(found, repository) };
  });
  if (hasGraphs || graphRepository === null) return { ...own, graphFolder: own.folder };
  const other = { id: graphRepository, revision: defaultRevision };
  const { folder: graphFolder } = await pullRepository(client, hub, other, options, (files) => ({
    described: [],
    graphs: requireGraphs(graphFilesOf(files, choice), other),
  }));
  return { ...own, graphFolder };
}

/**
 * The model, complete in the cache at the commit that its revision is now. Files that are there already and whole
 * are not downloaded again.
 * @throws ConfigurationError that says what is wrong and what to do
 */
export async function pullModel(
  hub: Hub,
  repository: Repository,
  wanted: WantedPrecision,
  options: PullOptions = {},
): Promise<PulledModel> {
  const client = createHubClient(hub.connection, hub.pacing.clock, hub.pacing.limits);
  try {
    return await pullAll(client, hub, repository, wanted, options);
  } catch (error) {
    throw asCacheProblem(error, hub.cacheDir);
  } finally {
    client.close();
  }
}
