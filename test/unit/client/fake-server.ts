/** Owns a server that is a function: it answers the requests of a client by script, and remembers them. */
import { createHttpTransport } from '../../../src/client/http.ts';
import type { ClientOptions } from '../../../src/client/options.ts';
import { openClient, type Client } from '../../../src/client/client.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';

/** What a test looks into as it came. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Loose = any;

/** A request as the server saw it. */
export interface SeenRequest {
  readonly url: string;
  readonly headers: Headers;
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, Loose>>;
  readonly signal: AbortSignal;
  readonly atMs: number;
}

/** An answer: members of a frame, a whole response, or none yet. */
export type Scripted = { readonly result: object } | { readonly error: object } | Response;

/** Answers a request; undefined leaves it to the server's own rules. */
export type Script = (request: SeenRequest, nth: number) => Scripted | Promise<Scripted> | undefined;

export const vendorInfo = {
  models: {
    embed: [
      { id: 'plain', identity: 'plain@1', maxInputTokens: 16, dimension: 4, matryoshka: false },
      { id: 'nested', identity: 'nested@1', maxInputTokens: 16, dimension: 8, matryoshka: true },
    ],
    sparseEmbed: [{ id: 'sparse', identity: 'sparse@1' }],
    multiVector: [{ id: 'rows', identity: 'rows@1', dimension: 2 }],
    rerank: [
      { method: 'cross-encoder', id: 'pairs', identity: 'pairs@1' },
      { method: 'colbert', id: 'rows', identity: 'rows@1' },
    ],
  },
  limits: { batchMembers: 8, bodyBytes: 2000, deadlineMs: 5000 },
  options: ['truncate', 'dimensions', 'priority', 'output', 'model'],
};

export const capabilities = {
  embed: { dimension: 4, identity: 'plain@1', batchLimit: 4, encodings: ['json', 'f32-base64'], modalities: ['text'] },
  sparseEmbed: { identity: 'sparse@1', batchLimit: 4 },
  multiVector: { dimension: 2, identity: 'rows@1', batchLimit: 4, encodings: ['json', 'f32-base64'] },
  rerank: { identity: 'pairs@1', methods: ['cross-encoder', 'colbert'], models: ['pairs', 'rows'], maxCandidates: 3 },
  streaming: {},
};

export const fakeInfo = {
  protocolVersion: 1,
  server: { name: 'fake', version: '1' },
  capabilities,
  'x-trivec': vendorInfo,
};

/** The vector of a text: its number, if it is one. */
const vectorOf = (text: string, dimension: number) => [Number(text) || 0, ...new Array<number>(dimension - 1).fill(0)];
/** A vector as base64. */
export const toBase64 = (vector: readonly number[]) => Buffer.from(new Float32Array(vector).buffer).toString('base64');

/** What a server answers that has nothing to complain about. */
export function ordinaryResult({ method, params }: SeenRequest): object {
  const texts = (params['inputs'] ?? params['passages'] ?? []) as string[];
  const encode = (vector: readonly number[]) => (params['encoding'] === 'f32-base64' ? toBase64(vector) : vector);
  const usage = { inputTokens: texts.length, truncated: [0], latencyMs: 3, queueMs: 1, computeMs: 2, device: 'cpu:0' };
  const vendor = params['x-trivec'] ?? {};
  const dimension: number = vendor.dimensions ?? (vendor.model === 'nested' ? 8 : 4);
  switch (method) {
    case 'info':
      return fakeInfo;
    case 'embed':
      return { vectors: texts.map((text) => encode(vectorOf(text, dimension))), usage };
    case 'embed/sparse':
      return { sparse: texts.map((text) => ({ indices: [Number(text)], values: [0.5] })), usage };
    case 'embed/multi':
      return { matrices: texts.map((text) => [encode(vectorOf(text, 2)), encode(vectorOf(text, 2))]), usage };
    case 'rerank': {
      const scores = texts.map(Number);
      const order = scores.map((_, index) => index).sort((a, b) => scores[b]! - scores[a]! || a - b);
      return { scores, order: order.slice(0, params['topN'] ?? order.length), usage };
    }
    default:
      return {};
  }
}

/** A fake server with a clock of its own. */
export interface FakeServer {
  readonly seen: readonly SeenRequest[];
  readonly clock: FakeClock;
  readonly fetch: typeof fetch;
  /** Requests that run a model. */
  calls(): readonly SeenRequest[];
  connect(options?: ClientOptions, random?: () => number): Promise<Client>;
}

/** A server that follows a script from its first request on. */
export function createFakeServer(script: Script = () => undefined): FakeServer {
  const seen: SeenRequest[] = [];
  const clock = createFakeClock();
  const answer = async (url: string, init: RequestInit): Promise<Response> => {
    const signal = init.signal!;
    const frame = JSON.parse(init.body as string) as Pick<SeenRequest, 'id' | 'method' | 'params'>;
    const request = { url, headers: new Headers(init.headers), signal, atMs: clock.nowMs(), ...frame };
    seen.push(request);
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
    const nth = seen.filter(({ method }) => method === request.method).length;
    const scripted = await Promise.race([script(request, nth) ?? { result: ordinaryResult(request) }, aborted]);
    return scripted instanceof Response ? scripted : Response.json({ jsonrpc: '2.0', id: request.id, ...scripted });
  };
  const fakeFetch = ((url: string, init: RequestInit) => answer(url, init)) as typeof fetch;
  return {
    seen,
    clock,
    fetch: fakeFetch,
    calls: () => seen.filter(({ method }) => method !== 'info'),
    connect(options = {}, random = () => 0) {
      const transport = createHttpTransport('http://fake', { fetch: fakeFetch, maxAnswerBytes: 10_000, apiKey: 'key' });
      return openClient(transport, options, { clock, random });
    },
  };
}

/** An answer that never comes. */
export const never = (): Promise<Scripted> => new Promise(() => undefined);

/** An error answer. */
export const failure = (code: number, data: object = {}, message = 'no') => ({ error: { code, message, data } });

/** What a promise rejects with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<Loose> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it was expected to reject');
}
