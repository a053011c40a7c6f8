/** Owns what callers may ask for: the options of each method and of the client. */
import type { ModelCapability } from './info.ts';
import type { RetryPolicy } from './retry.ts';

/** Forms of a dense vector, and the array that holds one. */
export interface VectorForms {
  readonly float32: Float32Array;
  /** clamp(round(127 x), -128, 127) */
  readonly int8: Int8Array;
  /** int8 + 128 */
  readonly uint8: Uint8Array;
  /** Bits of x > 0, most significant first, eight a byte, minus 128. */
  readonly binary: Int8Array;
  /** The same without the minus. */
  readonly ubinary: Uint8Array;
}

/** One of the forms. */
export type VectorOutput = keyof VectorForms;

/** How far a call is. */
export interface Progress {
  /** From 0 to 1; never goes back, and the last report says 1. */
  readonly progress: number;
  readonly doneCount: number;
  readonly totalCount: number;
}

/** What every call takes. */
export interface CallOptions {
  /** Stops the call: it rejects with the signal's reason, which is an `AbortError` unless another was given. */
  readonly signal?: AbortSignal;
  /** Time that the whole call may take, waits and repetitions included; above 0, and Infinity is none. @unit ms */
  readonly deadlineMs?: number;
}

/** What every call that runs a model takes. */
export interface ModelCallOptions extends CallOptions {
  /** False refuses a text that is too long instead of cutting it. */
  readonly truncate?: boolean;
  readonly priority?: 'interactive' | 'bulk';
  /** One of the server's models for this method; its first one otherwise. */
  readonly model?: string;
  readonly onProgress?: (progress: Progress) => void;
}

/** What every kind of vector takes. */
export interface TextsOptions extends ModelCallOptions {
  /** What the texts are to each other: what is looked for, or what is looked in. */
  readonly kind?: 'query' | 'document';
}

/** Options of `embed`. */
export interface EmbedOptions<O extends VectorOutput = VectorOutput> extends TextsOptions {
  /** Cut to so many and normalised again; only for models that are made for it. */
  readonly dimensions?: number;
  readonly output?: O;
  /** How vectors travel: base64 where the server offers it, unless this says otherwise. */
  readonly encoding?: 'json' | 'f32-base64';
}

/** Options of `multiVector`. */
export interface MultiVectorOptions<O extends VectorOutput = VectorOutput> extends TextsOptions {
  readonly output?: O;
  readonly encoding?: 'json' | 'f32-base64';
}

/** Options of `rerank`. */
export interface RerankOptions extends ModelCallOptions {
  /** Length of `order` and `results`; the scores are always all there. */
  readonly topN?: number;
  /** Such as `cross-encoder` or `colbert`; the server's first one otherwise. */
  readonly method?: string;
}

/** What an index was made with: the identity of each model. */
export type Identities = Readonly<Partial<Record<ModelCapability, string>>>;

/** Options of a client, whichever way it takes. */
export interface ClientOptions {
  /** Stops connecting. */
  readonly signal?: AbortSignal;
  /** Compared with what the server serves; a difference is a warning. */
  readonly expectIdentity?: Identities;
  /** Gets each warning; without it they go to `console.warn`. */
  readonly onWarning?: (message: string) => void;
  /** Requests under way at the same time, of all calls of this client together. Default 4. */
  readonly maxParallelRequests?: number;
  /** Texts in one request at most, beside the server's own limit. Default: that limit. */
  readonly maxTextsPerRequest?: number;
  /** Largest answer that is read. Default 256 MiB. @unit bytes */
  readonly maxAnswerBytes?: number;
  /** Time after which a request without an answer counts as lost. Default 60 s. @unit ms */
  readonly answerTimeoutMs?: number;
  /** Default: 6 attempts, 60 s of waiting. */
  readonly retry?: Partial<RetryPolicy>;
}

/** Options of a client over HTTP. */
export interface HttpClientOptions extends ClientOptions {
  /** Sent as `Authorization: Bearer`; a user name and password in the address are refused beside it. */
  readonly apiKey?: string;
  /** Sent with every request, for what stands in front of the server. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Used in the place of the global one. */
  readonly fetch?: typeof fetch;
}
