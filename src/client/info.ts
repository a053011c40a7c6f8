/** Owns the shape of what a server says about itself in `info`. */
import { errorOf } from './error.ts';

/** What every kind of vector says of itself; a server leaves out what it does not bound or does not know. */
export interface VectorCapability {
  /** Model, revision, precision and pooling: vectors of two identities do not belong into one index. */
  readonly identity?: string;
  readonly batchLimit?: number;
  readonly modalities?: readonly string[];
  /** Forms of a vector on the wire; `json` always works. */
  readonly encodings?: readonly string[];
}

/** `embed`. */
export interface EmbedCapability extends VectorCapability {
  readonly dimension: number;
  readonly normalized?: boolean;
}

/** `embed/sparse`. */
export interface SparseEmbedCapability extends VectorCapability {
  /** Number of terms. */
  readonly vocabulary?: number;
}

/** `embed/multi`. */
export interface MultiVectorCapability extends VectorCapability {
  readonly dimension: number;
  readonly similarity?: string;
}

/** `rerank`. */
export interface RerankCapability {
  readonly identity?: string;
  /** The first is the default. */
  readonly methods?: readonly string[];
  readonly maxCandidates?: number;
  /** The first is the default. */
  readonly models?: readonly string[];
}

/** What the server offers; a method works exactly where its key is here. */
export interface Capabilities {
  readonly embed?: EmbedCapability;
  readonly sparseEmbed?: SparseEmbedCapability;
  readonly multiVector?: MultiVectorCapability;
  readonly rerank?: RerankCapability;
  readonly streaming?: object;
  readonly log?: { readonly levels?: readonly string[] };
}

/** A capability with models behind it. */
export type ModelCapability = 'embed' | 'sparseEmbed' | 'multiVector' | 'rerank';

/** One model of a trivec server. */
export interface ServedModel {
  /** What the option `model` takes. */
  readonly id: string;
  readonly identity: string;
  readonly maxInputTokens?: number;
  readonly dimension?: number;
  /** Whether its vectors may be cut; absent where the server does not say. */
  readonly matryoshka?: boolean;
  /** Rerank only. */
  readonly method?: string;
}

/** A device of a trivec server, as it was when `info` was read. */
export interface ServedDevice {
  readonly id: string;
  readonly executionProvider: string;
  readonly name: string;
  readonly precision?: string;
  readonly state: string;
  readonly serves: readonly string[];
}

/** What a trivec server says beyond RCP/1. */
export interface VendorInfo {
  readonly devices?: readonly ServedDevice[];
  readonly models?: Readonly<Partial<Record<ModelCapability, readonly ServedModel[]>>>;
  readonly maxInputTokens?: Readonly<Partial<Record<ModelCapability, number>>>;
  readonly limits?: { readonly batchMembers?: number; readonly bodyBytes?: number; readonly deadlineMs?: number };
  /** Options that work. */
  readonly options?: readonly string[];
}

/** Member that holds what this server says and takes beyond RCP/1. */
export const vendorKey = 'x-trivec';

/** The answer to `info`. */
export interface ServerInfo {
  readonly protocolVersion: number;
  readonly server: { readonly name: string; readonly version: string };
  readonly capabilities: Capabilities;
  readonly 'x-trivec'?: VendorInfo;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * An answer to `info` or `initialize`, as far as it has to be checked to be read.
 * @throws internal where it has no capabilities
 */
export function readInfo(result: Record<string, unknown>, address: string): ServerInfo {
  const { capabilities, server } = result;
  if (!isObject(capabilities) || !isObject(server)) {
    throw errorOf('internal', `${address}: the answer to info names no server or no capabilities`);
  }
  return result as unknown as ServerInfo;
}
