/** Owns where a named model is: in the cache, or there after a download. */
import { ConfigurationError } from '../../errors.ts';
import type { DeviceAbilities } from '../graph-variant.ts';
import type { Precision } from '../manifest.ts';
import type { LocatedModel } from '../registry.ts';
import { findCached } from './cached-model.ts';
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
  /** Where the models will run. */
  readonly device: DeviceAbilities;
}

/** The hub as a server uses it: plain lines of progress, the machine's clock. */
export function openHub({
  report,
  ...places
}: Pick<Hub, 'connection' | 'cacheDir'> & { readonly report: (line: string) => void }): Hub {
  return { ...places, pacing: systemPacing, progress: lineProgress(report) };
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

async function locate(options: LocateOptions, repository: Repository): Promise<LocatedModel> {
  const { hub, isOffline, wanted, device } = options;
  const { model, isConverted, missing } = await findCached(hub.cacheDir, repository, { wanted, device });
  if (model !== null && (isOffline || !isConverted)) return model;
  if (isOffline) throw offlineProblem(options, repository, missing);
  try {
    const pulled = await pullModel(hub, repository, wanted, { device, isPinned: true });
    return { folder: pulled.folder, graphFolder: pulled.graphFolder, repository: repository.id };
  } catch (error) {
    if (model === null || !(error instanceof ConfigurationError)) throw error;
    // The hub may have the precision itself; where it does not answer, what is here can be converted.
    hub.progress.onNote(`${showRepository(repository)}: the cache is used, because ${error.problems.join('; ')}`);
    return model;
  }
}

/**
 * Gives the place of a model named `org/name` or `org/name@revision`, null for anything else. A recorded revision
 * that is complete in the cache is used as it is, without asking the hub; a model is looked for once.
 */
export function createLocator(options: LocateOptions): (text: string) => Promise<LocatedModel | null> {
  const located = new Map<string, Promise<LocatedModel>>();
  return async (text) => {
    const repository = parseRepository(text);
    if (repository === null) return null;
    const name = showRepository(repository);
    const model = located.get(name) ?? locate(options, repository);
    located.set(name, model);
    return model;
  };
}
