/** Owns a call of a compatible route without a server: what the route asks of the task, and a result for it. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ServiceError } from '../../../../src/errors.ts';
import type { CompatCall, CompatFamily } from '../../../../src/http/compat/family.ts';
import type { TextsToDetail, TokenDetail } from '../../../../src/rpc/served-facts.ts';
import type { TaskRequest, TaskResult } from '../../../../src/rpc/task-request.ts';

const usage = { inputTokens: 7, truncated: [], queueMs: 0, computeMs: 0, device: 'cpu:0', latencyMs: 0 };
const servedBy = { usage, tokenCounts: [] };

/** Scores that are no order by index; passages beyond them score 0. */
export const scores = [0.25, 1, 0.5];

/** Longest text of every model here. @unit tokens */
const maxInputTokens = 6;
const models = [
  { model: 'dense-a@1', methods: ['embed'] },
  { model: 'dense-b@1', methods: ['embed'] },
  { model: 'cross@1', methods: ['rerank'] },
] as const;

/** One special token, a token a word, one special token. */
function tokensOf(text: string): TokenDetail[] {
  const special = { id: 0, text: '', isSpecial: true, start: null, end: null };
  let place = 0;
  const words = text.split(' ').map((word, index) => {
    const start = place;
    const length = Array.from(word).length;
    place += length + 1;
    return { id: index + 1, text: word, isSpecial: false, start, end: start + length };
  });
  return [special, ...words, special];
}

/** As far as the routes here look. */
const served = {
  models: models.map((each) => ({ ...each, maxInputTokens })),
  limits: { batchLimit: 4, maxCandidates: 128 },
  tokenize: async ({ texts }: TextsToDetail, _signal: AbortSignal, use: (tokens: TokenDetail[][]) => unknown) =>
    use(texts.map(tokensOf)),
};

/** Nine numbers, so that packed bits fill more than one byte. */
export const vectorOf = (index: number): Float32Array =>
  Float32Array.from({ length: 9 }, (_, place) => ((place % 3) - 1) * 0.1 * (index + 1));

function resultOf(request: TaskRequest, queryRows: number | null): TaskResult {
  if (request.method === 'embed') {
    const vectors = request.inputs.values.map((_, index) => vectorOf(index));
    return { ...servedBy, method: 'embed', model: request.model ?? 'dense-a@1', vectors, dimension: 9 };
  }
  if (request.method !== 'rerank') throw new Error('no route here asks for this');
  const all = request.passages.values.map((_, index) => (scores[index] ?? 0) * (queryRows ?? 1));
  const order = all.map((_, index) => index).sort((a, b) => (all[b] ?? 0) - (all[a] ?? 0));
  return { ...servedBy, method: 'rerank', model: 'cross@1', scores: all, rawScores: all, order, queryRows };
}

/** What a route answered, and what it asked for. */
export interface Answered {
  readonly status: number;
  readonly json: unknown;
  /** The body as it was written. */
  readonly text: string;
  readonly request: TaskRequest | null;
}

/** What a call is made with, and what its task does. */
export interface CallOptions {
  readonly headers?: IncomingHttpHeaders;
  /** Results are of a colbert model with so many rows of the query. */
  readonly queryRows?: number;
  /** The body as it is sent; absent: as JSON is written. */
  readonly bodyText?: string;
  /** What the task fails with. */
  readonly failure?: ServiceError;
}

/** Calls a route of a family. */
export async function callRoute(
  family: CompatFamily,
  path: string,
  body: unknown,
  { headers = {}, queryRows, bodyText = JSON.stringify(body), failure }: CallOptions = {},
): Promise<Answered> {
  const route = family.routes.find((each) => each.path === path);
  if (route === undefined) throw new Error(`${family.name} has no route ${path}`);
  const asked: TaskRequest[] = [];
  const run = async (request: TaskRequest) => {
    asked.push(request);
    if (failure !== undefined) throw failure;
    return resultOf(request, queryRows ?? null);
  };
  const call = { incoming: { headers }, body, bodyText, run, served, signal: new AbortController().signal };
  const { status, body: bytes } = await route.answer(call as unknown as CompatCall);
  return { status, json: JSON.parse(String(bytes)), text: String(bytes), request: asked[0] ?? null };
}
