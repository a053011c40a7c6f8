/** Owns every message between the serving process and an executor process. */

/**
 * What a run returns for each item:
 * `dense` one vector, `sparse` the non-zero terms, `rows` one vector per kept token,
 * `logit` the one score of a cross-encoder, `maxSim` the MaxSim sum of the kept rows with the query's rows,
 * `hidden` the encoder's own rows, one per token: an output that the graph has anyway, to which nothing is added.
 */
export type Head = AddedHead | 'hidden';

/** A head that is added to a model's graph, or is a graph of its own. */
export type AddedHead = 'dense' | 'sparse' | 'rows' | 'logit' | 'maxSim';

/** Name of the graph output that carries each head; `maxSim` is the stand-alone MaxSim graph's. */
export const headOutputs: Readonly<Record<AddedHead, string>> = {
  dense: 'trivec_dense',
  sparse: 'trivec_sparse',
  rows: 'trivec_rows',
  logit: 'trivec_logit',
  maxSim: 'trivec_max_sim',
};

/**
 * Outputs that hold the heaviest terms of a sparse vector, for devices from which the full row is slow to copy.
 * Where the last weight is not zero, the row of `trivec_sparse` is to be taken instead.
 * @shape each f32 [batch, terms], weights descending, ids as float32
 */
export const topTermOutputs = { weights: 'trivec_sparse_top_weights', ids: 'trivec_sparse_top_ids' } as const;

/**
 * Input of graphs whose pooling leaves out the prompt: 1 for the tokens that are pooled.
 * @shape int64 [batch, sequence]
 */
export const poolingMaskInput = 'trivec_pooling_mask';

/** One text, ready to run. */
export interface RunItem {
  /** @shape [tokens], special tokens included, no padding */
  readonly ids: Int32Array;
  /** Segment of each token; null means all zero. @shape [tokens] */
  readonly typeIds: Uint8Array | null;
  /** Positions whose rows are returned by `rows` and compared by `maxSim`; null means all. */
  readonly keptRows: Int32Array | null;
  /** Tokens at the start that are left out of the pooling, where the graph has `trivec_pooling_mask`; absent: none. */
  readonly promptTokens?: number;
  /** From this position on `attention_mask` is 0, though the rows count (query expansion); absent: no such tokens. */
  readonly attendedTokens?: number;
  /** Heads beside the batch's that are read from the same pass, for callers who sent the same text; absent: none. */
  readonly sharedHeads?: readonly SharedHead[];
}

/** A head of the model's own graph, wanted by another caller of the same text. */
export interface SharedHead {
  readonly head: Exclude<Head, 'maxSim'>;
  /** As in `RunItem`. */
  readonly keptRows: Int32Array | null;
}

/** A vector per row, row after row. */
export interface Matrix {
  /** @shape f32 [rows x dimension] */
  readonly values: Float32Array;
  readonly dimension: number;
}

/** Items of one model and one head that run together. */
export interface RunBatch {
  readonly modelId: string;
  readonly head: Head;
  readonly items: readonly RunItem[];
  /** The query's rows, for `maxSim` only. */
  readonly queryRows: Matrix | null;
}

/** What a run gave for one item. */
export interface RunRow {
  /** dense: [dimension]; sparse: [terms]; rows: [keptRows x dimension]; logit and maxSim: [1] */
  readonly values: Float32Array;
  /** sparse: the term ids, ascending, same length as `values`; else null. */
  readonly indices: Int32Array | null;
  /** One for each of the item's `sharedHeads`. */
  readonly shared?: readonly RunRow[];
}

/** Which texts may share a run. */
export interface RunPolicy {
  /**
   * `alone`: one text a run; `equalLength`: texts of one length, because nothing hides padding;
   * `padded`: any texts, the shorter ones padded on the right.
   */
  readonly kind: 'alone' | 'equalLength' | 'padded';
  /** Texts that a run must have, filled up with copies; null where any number will do. */
  readonly fixedBatch: number | null;
  /** Tokens that every text must be padded to; null where any length will do. */
  readonly fixedTokens: number | null;
}

/** How the output of the sparse head is read. */
export interface SparseOutput {
  /** `terms`: a weight for each vocabulary entry; `tokens`: a weight for each token, merged by the largest. */
  readonly form: 'terms' | 'tokens';
  /** tokens: ids that never get a weight. */
  readonly unweightedIds: readonly number[];
  /** Length of the outputs in `topTermOutputs`; null where the graph has none. */
  readonly topTerms: number | null;
}

/** What an executor must know of a model to load and run it. */
export interface ModelLoad {
  readonly modelId: string;
  /** Prepared graph: the original with its heads appended. */
  readonly graphPath: string;
  readonly heads: readonly AddedHead[];
  /** Name of the graph's own output that `hidden` is read from; absent: the model does not serve it. */
  readonly hiddenOutput?: string;
  readonly vocabularySize: number;
  readonly maxTokens: number;
  /** int8 graphs quantise activations while running, which decides how the session is set up. */
  readonly precision: 'int8' | 'fp16' | 'fp32';
  /** Stand-alone MaxSim graph for the `maxSim` head; null where the model has none. */
  readonly maxSimGraphPath: string | null;
  readonly runPolicy: RunPolicy;
  /**
   * For a graph with `position_ids`; null: tokens count from 0. Else tokens of another id count from this one plus 1,
   * and this id, wherever it stands, has its own number as its position.
   */
  readonly positionPadId: number | null;
  /** null where the model does not serve `sparse`. */
  readonly sparse: SparseOutput | null;
}

/** Name of an execution provider of the engine. */
export type ProviderName = 'cpu' | 'webgpu' | 'cuda';

/** The one execution provider that an executor runs everything on. */
export interface ProviderChoice {
  readonly name: ProviderName;
  /** Which of the provider's devices; 0 where it has one. */
  readonly deviceIndex: number;
}

/** Where the nodes of a model went. */
export interface NodePlacement {
  readonly modelId: string;
  /**
   * Nodes that compute and were left to the CPU though another provider was asked for, each as its name and, in
   * brackets, its operator. None on the CPU.
   */
  readonly foreignNodes: readonly string[];
}

/** How long a run of that size took. */
export interface Timing {
  readonly texts: number;
  /** Length of each row, padding included. */
  readonly tokens: number;
  /** @unit ms */
  readonly ms: number;
}

/** A head of a loaded model. */
export interface ModelHead {
  readonly modelId: string;
  readonly head: Head;
}

/** How long runs of a head take, in sizes that tell what others will take. */
export interface HeadTimings extends ModelHead {
  readonly timings: readonly Timing[];
}

/**
 * What a failed run says: nothing of the executor (`failed`), that memory did not suffice, or that the device is gone,
 * after which the executor ends by itself.
 */
export type RunFailureCause = 'failed' | 'outOfMemory' | 'deviceLost';

/** Serving process to executor. */
export type ParentMessage =
  | {
      readonly type: 'load';
      readonly models: readonly ModelLoad[];
      readonly threads: number;
      readonly provider: ProviderChoice;
      /** Heads of which it is known how long runs take: they are not timed. */
      readonly timedHeads: readonly ModelHead[];
    }
  | {
      readonly type: 'run';
      readonly runId: number;
      /** Before all runs that are not, once the run of the moment is over. */
      readonly isUrgent: boolean;
      readonly batch: RunBatch;
    }
  /** Nobody waits for these items any more: those that have not begun are not run, their rows are null. */
  | { readonly type: 'skip'; readonly runId: number; readonly positions: readonly number[] }
  | { readonly type: 'stop' };

/** Executor to serving process. */
export type ExecutorMessage =
  | {
      readonly type: 'loaded';
      readonly executionProvider: string;
      readonly loadMs: number;
      readonly placements: readonly NodePlacement[];
      /** One for each head that runs the model's own graph and was not known. */
      readonly timings: readonly HeadTimings[];
    }
  | { readonly type: 'loadFailed'; readonly reason: string }
  | {
      readonly type: 'result';
      readonly runId: number;
      /** One for each item; null where it was skipped. */
      readonly rows: readonly (RunRow | null)[];
      readonly computeMs: number;
      /** Tokens that went through the graph, padding and copies included. */
      readonly paddedTokens: number;
      /** Memory of the executor's process, read a moment ago. @unit bytes */
      readonly residentBytes: number;
      readonly nextRunId: number | null;
    }
  | {
      readonly type: 'runFailed';
      readonly runId: number;
      readonly reason: string;
      readonly kind: RunFailureCause;
      /** The run that begins now, of those that wait; null where none does. */
      readonly nextRunId: number | null;
    };
