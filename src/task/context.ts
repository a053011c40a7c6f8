/** Owns what every task gets besides its own arguments, and what it reports besides its result. */
import type { ModelManifest } from '../model/manifest.ts';
import type { Lane } from '../schedule/item.ts';
import type { Scheduler } from '../schedule/scheduler.ts';
import type { CallStages } from '../telemetry/stages.ts';
import type { TextTokenizer } from '../tokenize/tokenizer.ts';
import type { KeptSide } from '../tokenize/window.ts';

/** A model with its tokenizer, under the identity that `info` advertises for one task. */
export interface ServedModel {
  readonly manifest: ModelManifest;
  readonly tokenizer: TextTokenizer;
  readonly identity: string;
  /** Ids whose rows are left out of a document's multi-vector. */
  readonly documentSkipIds: ReadonlySet<number>;
  /** Ids whose rows are left out of a query's; absent: none. */
  readonly querySkipIds?: ReadonlySet<number>;
  /** Weight of each vocabulary term in a query that is looked up; must be there where the manifest names a source. */
  readonly queryTermWeights?: Float32Array | null;
}

/** One way to rerank. */
export interface Reranker {
  readonly method: 'cross-encoder' | 'colbert' | 'llm';
  readonly served: ServedModel;
}

/** What is configured, by task; the first of each is the default. */
export interface ServedTasks {
  readonly embed: readonly ServedModel[];
  readonly sparseEmbed: readonly ServedModel[];
  readonly multiVector: readonly ServedModel[];
  readonly rerankers: readonly Reranker[];
}

/** What becomes of a text that is too long: refused, or cut with this end kept; null is the model's own end. */
export type Truncation = 'refuse' | 'keepStart' | 'keepEnd' | null;

const keptSides = { refuse: null, keepStart: 'start', keepEnd: 'end' } as const;

/** The end that is kept of a text that is too long; null: the one that the model keeps. */
export const keptSideOf = (truncation: Truncation): KeptSide | null =>
  truncation === null ? null : keptSides[truncation];

/** What a task needs of the service and of its call. */
export interface TaskContext {
  readonly scheduler: Scheduler;
  readonly lane: Lane;
  readonly truncation: Truncation;
  /** Aborts with a ServiceError as its reason when the call is cancelled, its deadline passed or its caller left. */
  readonly signal: AbortSignal;
  /** Time until the deadline. @unit ms */
  readonly remainingMs: () => number;
  readonly onProgress: ((doneCount: number, totalCount: number) => void) | null;
  /** Told of what the call does when. */
  readonly stages: CallStages;
}

/** What a task did, for `usage`. */
export interface TaskUsage {
  /** Real tokens, run or known: after truncation, with special tokens, without padding. */
  readonly inputTokens: number;
  /** Indices of the inputs that were cut. */
  readonly truncated: readonly number[];
  readonly queueMs: number;
  readonly computeMs: number;
  /** Device that ran it; null where nothing had to run. */
  readonly device: string | null;
}

/** Usage of a call that had nothing to do. */
export const emptyUsage: TaskUsage = { inputTokens: 0, truncated: [], queueMs: 0, computeMs: 0, device: null };
