/** Owns the inference sessions of an executor: one for each model, one for each stand-alone MaxSim graph. */
import { InferenceSession } from 'onnxruntime-node';
import { messageOf } from './engine-failure.ts';
import { graphProblem } from './graph-check.ts';
import type { CpuNodes } from './placement.ts';
import { headOutputs } from './protocol.ts';
import type { ModelLoad, ProviderChoice } from './protocol.ts';
import { prepareEngine, sessionOptions } from './session-options.ts';
import type { SessionSettings } from './session-options.ts';

/** A model that can run. */
export interface LoadedModel {
  readonly load: ModelLoad;
  readonly session: InferenceSession;
  /** null where the model does not serve `maxSim`. */
  readonly maxSimSession: InferenceSession | null;
}

/** Loaded models by their id. */
export type LoadedModels = ReadonlyMap<string, LoadedModel>;

/**
 * One session for each model, all on one provider; at most `threads` threads work on what runs on the CPU.
 * @throws Error that names the model and what it lacks
 */
export async function loadModels(
  models: readonly ModelLoad[],
  threads: number,
  provider: ProviderChoice = { name: 'cpu', deviceIndex: 0 },
  cpuNodes: CpuNodes = new Map(),
): Promise<LoadedModels> {
  prepareEngine();
  const loaded = new Map<string, LoadedModel>();
  const maxSimSessions = new Map<string, InferenceSession>();
  const settings = { threads, provider };
  for (const load of models) {
    const { precision } = load;
    try {
      const session = await InferenceSession.create(
        load.graphPath,
        sessionOptions({ ...settings, precision, cpuNodes: cpuNodes.get(load.modelId) ?? [] }),
      );
      const problem = graphProblem(load, session);
      if (problem !== null) throw new Error(problem);
      loaded.set(load.modelId, {
        load,
        session,
        maxSimSession: await maxSimSessionOf(load, { ...settings, precision: 'fp32', cpuNodes: [] }, maxSimSessions),
      });
    } catch (error) {
      throw new Error(`Model ${load.modelId} (${load.graphPath}): ${messageOf(error)}`, { cause: error });
    }
  }
  return loaded;
}

/** Gives every session back. */
export async function releaseModels(models: LoadedModels): Promise<void> {
  const sessions = new Set<InferenceSession>();
  for (const model of models.values()) {
    sessions.add(model.session);
    if (model.maxSimSession !== null) sessions.add(model.maxSimSession);
  }
  for (const session of sessions) await session.release();
}

async function maxSimSessionOf(
  load: ModelLoad,
  settings: SessionSettings,
  sessions: Map<string, InferenceSession>,
): Promise<InferenceSession | null> {
  if (!load.heads.includes('maxSim')) return null;
  const path = load.maxSimGraphPath;
  if (path === null) throw new Error('the maxSim head needs a MaxSim graph');
  const session = sessions.get(path) ?? (await InferenceSession.create(path, sessionOptions(settings)));
  sessions.set(path, session);
  for (const name of ['query_rows', 'passage_rows']) {
    if (!session.inputNames.includes(name)) throw new Error(`the MaxSim graph ${path} has no input ${name}`);
  }
  if (!session.outputNames.includes(headOutputs.maxSim)) {
    throw new Error(`the MaxSim graph ${path} has no output ${headOutputs.maxSim}`);
  }
  return session;
}
