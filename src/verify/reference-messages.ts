/** Owns every message between this process and the one that runs transformers.js. */

/** Class that transformers.js runs a model with. */
export type ReferenceClass =
  'AutoModel' | 'AutoModelForMaskedLM' | 'AutoModelForSequenceClassification' | 'AutoModelForCausalLM';

/** What is run. */
export interface ReferenceModel {
  /** Folder of `config.json` and the tokenizer's files. */
  readonly folder: string;
  readonly graphPath: string;
  readonly modelClass: ReferenceClass;
}

/** A text as ids. */
export interface ReferenceIds {
  readonly ids: readonly number[];
  /** Segments; null where the tokenizer gives none. */
  readonly typeIds: readonly number[] | null;
}

/** An output of the model for one text, the batch of one included. */
export interface ReferenceOutput {
  /** Name of its element type. */
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: ArrayBufferView & ArrayLike<number>;
}

/** To the process. */
export type ReferenceRequest =
  | { readonly type: 'open'; readonly model: ReferenceModel }
  | { readonly type: 'encode'; readonly text: string; readonly pair: string | null; readonly hasSpecialTokens: boolean }
  | { readonly type: 'run'; readonly ids: Int32Array; readonly typeIds: Uint8Array | null; readonly output: string };

/** From the process: one for each request. */
export type ReferenceReply =
  | { readonly type: 'opened'; readonly version: string }
  | { readonly type: 'encoded'; readonly encoded: ReferenceIds }
  | { readonly type: 'ran'; readonly output: ReferenceOutput }
  | { readonly type: 'failed'; readonly reason: string };
