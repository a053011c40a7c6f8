/** Owns what the benchmark must know of a server: how to ask it for vectors, and how to judge its answers. */
import type { HttpAnswer, HttpClient } from './http-client.ts';
import type { Outcome } from './tally.ts';

/** One call for vectors. */
export interface EmbedRequest {
  readonly texts: readonly string[];
  readonly kind: 'query' | 'document';
  /** Whether the server may let others go first. */
  readonly isBulk: boolean;
}

/** What is settled with a server before the first call. */
export interface CallSettings {
  /** Null where the server chooses. */
  readonly model: string | null;
  readonly encoding: 'f32-base64' | 'json';
}

/** What the body of an answer says. */
export type Reading =
  { readonly vectors: number; readonly tokens: number | null } | Exclude<Outcome, { readonly kind: 'answered' }>;

/** A kind of server. */
export interface Target {
  /** Where it is asked, unless the URL has a path of its own. */
  readonly path: string;
  /**
   * Asks the server what a caller must know.
   * @throws Error where the server does not say, in words for a person
   */
  settle(client: HttpClient, path: string, model: string | null): Promise<CallSettings>;
  /** The body of a call. */
  body(request: EmbedRequest, settings: CallSettings): object;
  /** What a parsed body says; its error, where it reports one. */
  read(body: unknown): Reading;
}

/** Members of what was parsed; none where it is no object. */
export const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

/** How many vectors a list holds: texts and lists that are not empty; 0 where it is no list. */
export const countVectors = (list: unknown): number =>
  Array.isArray(list)
    ? list.filter((vector) => (typeof vector === 'string' || Array.isArray(vector)) && vector.length > 0).length
    : 0;

/** A number of tokens, or null for anything else. */
export const tokensOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

const tooManyRequests = 429;

function parse(body: Buffer): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(body.toString()) };
  } catch {
    return null;
  }
}

/** What became of a call: every vector is counted, and an answer with too few or too many is a failure. */
export function judge(target: Target, texts: number, { status, body }: HttpAnswer): Outcome {
  if (status === tooManyRequests) return { kind: 'refused' };
  if (status !== 200) return { kind: 'failed', reason: `HTTP ${status}`, message: body.toString() };
  const parsed = parse(body);
  if (parsed === null) return { kind: 'failed', reason: 'no JSON', message: body.toString() };
  const reading = target.read(parsed.value);
  if ('kind' in reading) return reading;
  if (reading.vectors !== texts) {
    const message = `${reading.vectors} vectors for ${texts} texts`;
    return { kind: 'failed', reason: 'wrong number of vectors', message };
  }
  return { kind: 'answered', tokens: reading.tokens };
}
