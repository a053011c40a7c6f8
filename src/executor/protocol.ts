/** Owns every message between the serving process and an executor process. */

/**
 * What a run returns for each item:
 * `dense` one vector, `sparse` the non-zero terms, `rows` one vector per kept token,
 * `logit` the one score of a cross-encoder, `maxSim` the MaxSim sum of the kept rows with the query's rows.
 */
export type Head = 'dense' | 'sparse' | 'rows' | 'logit' | 'maxSim';

/** Name of the graph output that carries each head; `maxSim` is the stand-alone MaxSim graph's. */
export const headOutputs: Readonly<Record<Head, string>> = {
  dense: 'trivec_dense',
  sparse: 'trivec_sparse',
  rows: 'trivec_rows',
  logit: 'trivec_logit',
  maxSim: 'trivec_max_sim',
};

/** One text, ready to run. */
export interface RunItem {
  /** @shape [tokens], special tokens included, no padding */
  readonly ids: Int32Array;
  /** Segment of each token; null means all zero. @shape [tokens] */
  readonly typeIds: Uint8Array | null;
  /** Positions whose rows are returned by `rows` and compared by `maxSim`; null means all. */
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
}

/** What an executor must know of a model to load and run it. */
export interface ModelLoad {
  readonly modelId: string;
  /** Prepared graph: the original with its heads appended. */
  readonly graphPath: string;
  readonly heads: readonly Head[];
  readonly vocabularySize: number;
  readonly maxTokens: number;
  /** int8 graphs quantise activations while running, which decides how the session is set up. */
  readonly precision: 'int8' | 'fp16' | 'fp32';
  /** Stand-alone MaxSim graph for the `maxSim` head; null where the model has none. */
  readonly maxSimGraphPath: string | null;
}

/** Serving process to executor. */
export type ParentMessage =
  | { readonly type: 'load'; readonly models: readonly ModelLoad[]; readonly threads: number }
  | { readonly type: 'run'; readonly runId: number; readonly batch: RunBatch }
  | { readonly type: 'stop' };

/** Executor to serving process. */
export type ExecutorMessage =
  | { readonly type: 'loaded'; readonly executionProvider: string; readonly loadMs: number }
  | { readonly type: 'loadFailed'; readonly reason: string }
  | { readonly type: 'result'; readonly runId: number; readonly rows: readonly RunRow[]; readonly computeMs: number }
  | { readonly type: 'runFailed'; readonly runId: number; readonly reason: string };
