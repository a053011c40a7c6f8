/** Owns what a call of a task asks for and gives, whatever protocol it came in and whatever bytes it goes out as. */
import type { Matrix } from '../executor/protocol.ts';
import type { Lane } from '../schedule/item.ts';
import type { Truncation } from '../task/context.ts';
import type { SparseVector } from '../task/sparse-embed.ts';
import type { CallUsage } from './encode.ts';

/** Texts, or what another protocol has made tokens of already. */
export interface InputList {
  /** Texts, or ids of the model's own vocabulary without special tokens. */
  readonly values: readonly (string | readonly number[])[];
  /** Name of the member that held them, for errors. */
  readonly field: string;
}

export type { Truncation };

interface VectorRequest {
  readonly inputs: InputList;
  readonly kind: 'query' | 'document' | null;
  /** Goes before each input in the place of the kind's prompt; absent: the kind's. */
  readonly prompt?: string;
  /** null: the first model of the method. */
  readonly model: string | null;
  readonly truncation: Truncation;
  /** null: interactive for one input or a query, else bulk. */
  readonly lane: Lane | null;
}

interface RowsRequest extends VectorRequest {
  /** Most that one row adds to the answer; absent: a list of JSON numbers. @unit bytes */
  readonly maxRowBytes?: number;
}

/** A call of a task. */
export type TaskRequest =
  | (VectorRequest & {
      readonly method: 'embed';
      readonly dimensions: number | null;
      /** Most tokens of an input, special ones included; absent: the model's limit. */
      readonly maxTokens?: number | null;
    })
  | (VectorRequest & { readonly method: 'embed/sparse' })
  | (RowsRequest & { readonly method: 'embed/multi' })
  /** The rows of the embedding model's encoder, one per token, special ones included, neither projected nor normalised. */
  | (RowsRequest & { readonly method: 'hidden' })
  | {
      readonly method: 'rerank';
      readonly query: string;
      readonly passages: InputList;
      readonly model: string | null;
      readonly rerankMethod: string | null;
      /** Most tokens of a passage itself; absent: what the model has room for. */
      readonly maxPassageTokens?: number | null;
      readonly truncation: Truncation;
      readonly lane: Lane | null;
    };

/** What every result says of the model that gave it. */
interface ServedBy {
  /** The model's name, as `info` lists it. */
  readonly model: string;
  readonly usage: CallUsage;
  /** Real tokens of each input (rerank: of each passage beside the query); sums up to `usage.inputTokens` or less. */
  readonly tokenCounts: readonly number[];
}

interface RowsResult extends ServedBy {
  readonly matrices: readonly Matrix[];
  readonly dimension: number;
}

/** Result of a call, before it becomes bytes. */
export type TaskResult =
  | (ServedBy & {
      readonly method: 'embed';
      readonly vectors: readonly Float32Array[];
      readonly dimension: number;
    })
  | (ServedBy & { readonly method: 'embed/sparse'; readonly sparse: readonly SparseVector[] })
  | (RowsResult & { readonly method: 'embed/multi' })
  | (RowsResult & { readonly method: 'hidden' })
  | (ServedBy & {
      readonly method: 'rerank';
      readonly scores: readonly number[];
      /** Before the activation: what the order follows. */
      readonly rawScores: readonly number[];
      /** Indices of the passages, best first. */
      readonly order: readonly number[];
      /** colbert: rows of the query, by which a sum divides into a mean; else null. */
      readonly queryRows: number | null;
    });

/** Request of one method. */
export type RequestOf<M extends TaskRequest['method']> = Extract<TaskRequest, { readonly method: M }>;

/** Result of a request of one method. */
export type ResultOf<M extends TaskRequest['method']> = Extract<TaskResult, { readonly method: M }>;
