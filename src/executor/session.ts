/** Owns the inference sessions of an executor: one for each model, one for each stand-alone MaxSim graph. */
import { env, InferenceSession } from 'onnxruntime-node';
import { graphProblem } from './graph-check.ts';
import { headOutputs } from './protocol.ts';
import type { ModelLoad } from './protocol.ts';

/** A model that can run. */
export interface LoadedModel {
  readonly load: ModelLoad;
  readonly session: InferenceSession;
  /** null where the model does not serve `maxSim`. */
  readonly maxSimSession: InferenceSession | null;
}

/** Loaded models by their id. */
export type LoadedModels = ReadonlyMap<string, LoadedModel>;

/** The one execution provider of this build; said to the parent once every model was created on it. */
export const executionProvider = 'cpu';

/**
 * One session for each model, all on the CPU provider.
 * Never more than `threads` threads work on a run; memory goes back after each run, because lengths vary.
 * @throws Error that names the model and what it lacks
 */
export async function loadModels(models: readonly ModelLoad[], threads: number): Promise<LoadedModels> {
  // The native library reports usage over the network unless this is set before its first session.
  process.env['ORT_DISABLE_TELEMETRY'] = '1';
  env.logLevel = 'error';
  const loaded = new Map<string, LoadedModel>();
  const maxSimSessions = new Map<string, InferenceSession>();
  for (const load of models) {
    try {
      const session = await InferenceSession.create(load.graphPath, sessionOptions(load, threads));
      const problem = graphProblem(load, session);
      if (problem !== null) throw new Error(problem);
      loaded.set(load.modelId, {
        load,
        session,
        maxSimSession: await maxSimSessionOf(load, threads, maxSimSessions),
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

function sessionOptions(load: Pick<ModelLoad, 'precision'>, threads: number): InferenceSession.SessionOptions {
  const session = { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } };
  // The fused kernel is slower on the CPU than the Add and LayerNormalization that it replaces.
  const optimization = { disable_specified_optimizers: 'SkipLayerNormFusion' };
  return {
    executionProviders: [executionProvider],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    enableCpuMemArena: false,
    enableMemPattern: false,
    logSeverityLevel: 3,
    extra: load.precision === 'int8' ? { session, optimization } : { session },
  };
}

async function maxSimSessionOf(
  load: ModelLoad,
  threads: number,
  sessions: Map<string, InferenceSession>,
): Promise<InferenceSession | null> {
  if (!load.heads.includes('maxSim')) return null;
  const path = load.maxSimGraphPath;
  if (path === null) throw new Error('the maxSim head needs a MaxSim graph');
  const session =
    sessions.get(path) ?? (await InferenceSession.create(path, sessionOptions({ precision: 'fp32' }, threads)));
  sessions.set(path, session);
  for (const name of ['query_rows', 'passage_rows']) {
    if (!session.inputNames.includes(name)) throw new Error(`the MaxSim graph ${path} has no input ${name}`);
  }
  if (!session.outputNames.includes(headOutputs.maxSim)) {
    throw new Error(`the MaxSim graph ${path} has no output ${headOutputs.maxSim}`);
  }
  return session;
}

/** First line of an error's message, cut to a bounded length. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : 'unknown error';
  return (text.split('\n')[0] ?? '').slice(0, 500);
}
