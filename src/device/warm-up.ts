/** Owns what an executor must do before it serves: load on the provider that was asked for, then show its proofs. */
import type { ModelHead, ModelLoad, ProviderChoice } from '../executor/protocol.ts';
import type { Conversation, LoadAnswer, RunAnswer } from './conversation.ts';
import { RunFailure } from './pool.ts';
import type { ProofRun } from './proof.ts';

/** What an executor is given. */
export interface WarmUpSettings {
  readonly models: readonly ModelLoad[];
  readonly threads: number;
  readonly provider: ProviderChoice;
  readonly proofRuns: readonly ProofRun[];
  /** Heads of which it is known now how long runs take: they are not timed again, so the start is shorter. */
  readonly timedHeads: () => readonly ModelHead[];
}

/** Every head of the models: what is asked for where nobody wants to know how long runs take. */
export const everyHead = (models: readonly ModelLoad[]): ModelHead[] =>
  models.flatMap(({ modelId, heads }) => heads.map((head) => ({ modelId, head })));

/** Nodes that are named before the rest is counted. */
const maxNamedNodes = 3;

/**
 * What loaded, all of it on the provider that was asked for.
 * @throws Error that names the model and the nodes that went elsewhere, RunFailure
 */
export async function loadModels(life: Conversation, settings: WarmUpSettings): Promise<LoadAnswer> {
  const { models, threads, provider, timedHeads } = settings;
  const answer = await life.load(models, threads, provider, timedHeads());
  if (answer.executionProvider !== provider.name) {
    throw new Error(`${provider.name} was asked for, and ${answer.executionProvider} took the models`);
  }
  for (const { modelId, foreignNodes } of answer.placements) {
    if (foreignNodes.length === 0) continue;
    const named = foreignNodes.slice(0, maxNamedNodes).join(', ');
    const others = foreignNodes.length - maxNamedNodes;
    const rest = others > 0 ? ` and ${others} others` : '';
    throw new Error(`${provider.name} cannot compute all of ${modelId}: ${named}${rest} would run on the CPU`);
  }
  return answer;
}

/**
 * What the run gave, which is what it must give.
 * @throws Error with the refusal, RunFailure
 */
export async function prove(life: Conversation, proof: ProofRun): Promise<RunAnswer> {
  const answer = await life.run(proof.batch).answer;
  const refusal = proof.judge(answer.rows.flatMap((row) => row ?? []));
  if (refusal !== null) throw new Error(refusal);
  return answer;
}

/** Why warming up failed, as the end of a sentence about the executor. */
export function warmUpFailure(error: unknown): string {
  if (error instanceof RunFailure && error.kind === 'runFailed') return `its proof run failed: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}
