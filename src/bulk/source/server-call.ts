/** Owns one call of one server: what is asked, what comes back, and which model it is of. */
import { RcpError, type connect } from '../../client/index.ts';
import type { PartLimits } from './parts.ts';
import type { Embedded, VectorWish } from './source.ts';

/** A connection to one server. */
export type Client = Awaited<ReturnType<typeof connect>>;

/** Capability behind each method. */
export const capabilities = { dense: 'embed', sparse: 'sparseEmbed', multi: 'multiVector' } as const;

/** An answer, and the model that it is of. */
export interface Answer extends Embedded {
  readonly identity: string;
  /** Whether the answer itself says so; otherwise it is what the server said when it was connected. */
  readonly isIdentityTold: boolean;
}

/** The model that a server said it serves. */
export function identityOf(client: Client, { method, model }: VectorWish): string {
  const told = client.identity(capabilities[method], model ?? undefined);
  if (told !== undefined) return told;
  // What little is known of a model without a name: vectors of another length are another model's.
  const { dimension, vocabulary } = (client.capabilities[capabilities[method]] ?? {}) as Readonly<
    Record<string, unknown>
  >;
  const parts = [dimension, vocabulary].filter((part) => typeof part === 'number').map(String);
  return ['unknown', ...parts].join(' ');
}

/** Texts in one request to a server that names no limit. */
const assumedTexts = 256;
/** Size of a body to a server that names no limit. @unit bytes */
const assumedBodyBytes = 1_048_576;
/** Room for what a request holds beside its texts. @unit bytes */
const frameBytes = 1024;

/** What one request to a server may hold. */
export function limitsOf({ info }: Client, { method }: VectorWish): PartLimits {
  const { embed } = info.capabilities;
  const { batchLimit = embed?.batchLimit ?? assumedTexts } = info.capabilities[capabilities[method]] ?? {};
  const bodyBytes = info['x-trivec']?.limits?.bodyBytes ?? assumedBodyBytes;
  return { maxTexts: Math.max(1, batchLimit), maxBytes: bodyBytes - frameBytes };
}

/**
 * Vectors of texts; a list of none is not sent, but what is asked for is judged.
 * @throws RcpError; the signal's reason
 */
export async function askClient(
  client: Client,
  texts: readonly string[],
  { method, kind, model, dimensions }: VectorWish,
  signal: AbortSignal,
): Promise<Answer> {
  const named = { kind, signal, ...(model === null ? {} : { model }) };
  // Servers of others take no priority, and a list goes behind single texts anyhow.
  const options = client.info['x-trivec'] === undefined ? named : { ...named, priority: 'bulk' as const };
  switch (method) {
    case 'dense': {
      const cut = dimensions === null ? {} : { dimensions };
      const { vectors, ...about } = await client.embed(texts, { ...options, ...cut });
      return { vectors: { kind: 'dense', vectors }, ...factsOf(about) };
    }
    case 'sparse': {
      const { sparse, ...about } = await client.sparseEmbed(texts, options);
      const rows = sparse.map(({ indices, values }) => ({ indices: Int32Array.from(indices), values }));
      return { vectors: { kind: 'sparse', sparse: rows }, ...factsOf(about) };
    }
    case 'multi': {
      const { matrices, dimension, ...about } = await client.multiVector(texts, options);
      const joined = matrices.map((rows) => joinRows(rows, dimension));
      return { vectors: { kind: 'multi', matrices: joined }, ...factsOf(about) };
    }
  }
}

function factsOf({
  usage,
  identity = '',
  isIdentityTold,
}: {
  readonly usage: { readonly inputTokens: number };
  readonly identity: string | undefined;
  readonly isIdentityTold: boolean;
}): Omit<Answer, 'vectors'> {
  return { tokens: usage.inputTokens, identity, isIdentityTold };
}

function joinRows(rows: readonly Float32Array[], dimension: number): { values: Float32Array; dimension: number } {
  const values = new Float32Array(rows.length * dimension);
  for (const [row, vector] of rows.entries()) values.set(vector, row * dimension);
  return { values, dimension };
}

/** An error of the client knows; what else a call throws is a fault of this program. */
export const isWorthRetrying = (error: unknown): boolean => error instanceof RcpError && error.retryable;

/** Whether a server is there and turns calls away. */
export const isOverload = (error: unknown): error is RcpError =>
  error instanceof RcpError && error.errorName === 'overloaded';

/** Wait where a server that is full does not say how long. @unit ms */
const usualWaitMs = 500;

/** What a server asked to wait, whatever it sent as that, but never less than a least wait. @unit ms */
export const waitAskedMs = ({ data: { retryAfterMs } }: RcpError, leastMs: number): number =>
  Number.isFinite(retryAfterMs) ? Math.max(leastMs, Number(retryAfterMs)) : usualWaitMs;

/** What is said of an error. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
