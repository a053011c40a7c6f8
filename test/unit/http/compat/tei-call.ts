/** Owns a call of one of the routes for text-embeddings-inference's clients, without a server. */
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { ServiceError } from '../../../../src/errors.ts';
import type { CompatCall } from '../../../../src/http/compat/family.ts';
import { teiFamily } from '../../../../src/http/compat/tei.ts';
import type { ModelFacts, ServedFacts, TokenDetail } from '../../../../src/rpc/served-facts.ts';
import type { RequestOf, ResultOf, TaskRequest } from '../../../../src/rpc/task-request.ts';

/** Results of the methods a test asks for. */
export type Results = { readonly [M in TaskRequest['method']]?: (request: RequestOf<M>) => unknown };

const usage = { inputTokens: 7, truncated: [], queueMs: 0, computeMs: 0, device: 'cpu:0', latencyMs: 0 };

/** A model that makes vectors by a mean and gives them unit length. */
export const denseModel: ModelFacts = {
  model: 'dense@1',
  identity: 'dense@1:int8:mean',
  revision: 'abc',
  precision: 'fp16',
  methods: ['embed'],
  maxInputTokens: 256,
  dimension: 4,
  pooling: 'mean',
  vectors: {
    prompts: { query: '', document: '', unspecified: '' },
    namedPrompts: {},
    isNormalized: true,
    plainPooling: 'mean',
  },
};

/** A model that makes terms. */
export const termsModel: ModelFacts = { ...denseModel, model: 'terms@1', methods: ['embed/sparse'] };

/** Ids 101 and 102 stand around every text, 201 and 202 around those of the model for terms; a word is a token. */
function tokensOf(text: string, hasSpecialTokens: boolean, model: string | null = null): TokenDetail[] {
  const special = (id: number): TokenDetail => ({ id, text: `[${id}]`, isSpecial: true, start: null, end: null });
  const words = [...text.matchAll(/\S+/gu)].map((match, index) => {
    const start = [...text.slice(0, match.index)].length;
    return { id: index + 1, text: match[0], isSpecial: false, start, end: start + [...match[0]].length };
  });
  const [first, last] = model === termsModel.model ? [201, 202] : [101, 102];
  return hasSpecialTokens ? [special(first), ...words, special(last)] : words;
}

/** What a call gave, and what it asked the task for. */
export interface TeiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly json: unknown;
  readonly requests: readonly TaskRequest[];
}

/** Calls a route; a ServiceError becomes the family's answer, as the server does it. */
export async function callTei(
  path: string,
  body: unknown,
  { results = {}, models = [denseModel] }: { results?: Results; models?: readonly ModelFacts[] } = {},
): Promise<TeiAnswer> {
  const route = teiFamily.routes.find((each) => each.path === path);
  if (route === undefined) throw new Error(`no route ${path}`);
  const requests: TaskRequest[] = [];
  const served: ServedFacts = {
    models,
    modelNames: 'any',
    limits: {
      batchLimit: 4,
      maxCandidates: 3,
      deadlineMs: 1000,
      maxBatchTokens: 64,
      maxBatchItems: 8,
      maxQueuedItems: 16,
    },
    server: { name: 'test', version: '1.2.3' },
    tokenize: async ({ texts, hasSpecialTokens, model }, _signal, use) =>
      use(texts.map((text) => tokensOf(text, hasSpecialTokens, model))),
    decode: async (ids, skips) => ids.map((list) => `${list.join('-')}${skips ? '' : ' raw'}`),
  };
  const call: CompatCall = {
    incoming: new IncomingMessage(new Socket()),
    body,
    bodyText: body === undefined ? '' : JSON.stringify(body),
    pathName: null,
    served,
    signal: new AbortController().signal,
    run: async <M extends TaskRequest['method']>(request: RequestOf<M>) => {
      requests.push(request);
      const result = results[request.method] as ((request: RequestOf<M>) => object) | undefined;
      if (result === undefined)
        throw new ServiceError('capabilityNotAdvertised', 'This server does not offer the method');
      return {
        model: 'dense@1',
        usage,
        tokenCounts: [],
        method: request.method,
        ...result(request),
      } as unknown as ResultOf<M>;
    },
  };
  const answer = await (async () => route.answer(call))().catch((error: unknown) => {
    if (error instanceof ServiceError) return teiFamily.errorAnswer(error);
    throw error;
  });
  const json: unknown = JSON.parse(String(answer.body));
  return { status: answer.status, headers: answer.headers ?? {}, json, requests };
}
