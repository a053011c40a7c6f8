/** Owns getting vectors from servers: spread over all that answer, with those that do not tried again later. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from '../../client/index.ts';
import type { RcpError } from '../../client/index.ts';
import { ConfigurationError } from '../../errors.ts';
import { BulkFailure } from '../row.ts';
import { nothing } from './nothing.ts';
import type { Embedded, VectorSource, VectorWish } from './source.ts';

type Client = Awaited<ReturnType<typeof connect>>;

/** How servers are used. */
export interface ServersOptions {
  readonly urls: readonly string[];
  readonly apiKey: string | null;
  readonly wish: VectorWish;
  /** Longest time in which no server gives anything, before the run is given up. @unit ms */
  readonly patienceMs: number;
  /** Longest time for one answer. @unit ms */
  readonly answerTimeoutMs: number;
  /** Told of servers that are left out and of those that are back. */
  readonly onNote: (note: string) => void;
}

/** Calls under way at each server. */
const callsPerServer = 2;
/** First wait before a server that failed is tried again; doubled each time. @unit ms */
const firstWaitMs = 500;
/** @unit ms */
const longestWaitMs = 30_000;

interface Server {
  readonly url: string;
  client: Client | null;
  calls: number;
  /** Failures since its last answer. */
  failures: number;
  /** Not before this time. @unit ms */
  freeAtMs: number;
  /** Never again. */
  isRefused: boolean;
}

const capabilities = { dense: 'embed', sparse: 'sparseEmbed', multi: 'multiVector' } as const;

/**
 * A source over servers that all serve the same model.
 * @throws ConfigurationError where they do not, or do not offer the method; BulkFailure where none can be reached
 */
export async function openServers(options: ServersOptions, signal: AbortSignal): Promise<VectorSource> {
  const { urls, wish, patienceMs, onNote } = options;
  const capability = capabilities[wish.method];
  const servers: Server[] = [...new Set(urls)].map((url) => ({
    url,
    client: null,
    calls: 0,
    failures: 0,
    freeAtMs: 0,
    isRefused: false,
  }));
  const open = ({ url }: Server): Promise<Client> =>
    connect(url, {
      signal,
      // What may succeed later is tried at whichever server is free then.
      retry: { maxAttempts: 1 },
      maxParallelRequests: callsPerServer,
      answerTimeoutMs: options.answerTimeoutMs,
      ...(options.apiKey === null ? {} : { apiKey: options.apiKey }),
      onWarning: onNote,
    });
  const opened = await Promise.allSettled(servers.map(open));
  const failures: string[] = [];
  for (const [position, outcome] of opened.entries()) {
    const server = servers[position] as Server;
    if (outcome.status === 'fulfilled') server.client = outcome.value;
    else {
      signal.throwIfAborted();
      if (!isWorthRetrying(outcome.reason))
        throw new ConfigurationError([`${server.url}: ${messageOf(outcome.reason)}`]);
      failures.push(`${server.url}: ${messageOf(outcome.reason)}`);
      leaveOut(server, outcome.reason, onNote);
    }
  }
  const first = servers.map(({ client }) => client).find((client) => client !== null);
  if (first === undefined)
    throw new BulkFailure(`no server can be reached\n${failures.map((line) => `  ${line}`).join('\n')}`);
  const identity = identityOf(first, wish);
  const differing = servers.filter(({ client }) => client !== null && identityOf(client, wish) !== identity);
  if (first.capabilities[capability] === undefined || differing.length > 0) {
    throw new ConfigurationError(problemsOf(servers, wish));
  }
  const offered = first.capabilities[capability];
  const dimension = wish.dimensions ?? ('dimension' in offered ? offered.dimension : 0);
  let lastAnswerMs = performance.now();

  /** A server that may be asked now, the least busy one; waits for it. */
  async function takeServer(ended: AbortSignal): Promise<Server> {
    for (;;) {
      ended.throwIfAborted();
      const nowMs = performance.now();
      const usable = servers.filter(({ isRefused }) => !isRefused);
      const free = usable.filter(({ freeAtMs, calls }) => freeAtMs <= nowMs && calls < callsPerServer);
      const [best] = free.sort((a, b) => a.calls - b.calls || a.failures - b.failures);
      if (best !== undefined) {
        // Counted at once: others look for one before this call has begun.
        best.calls += 1;
        return best;
      }
      const isBusy = usable.some(({ calls }) => calls > 0);
      if (usable.length === 0 || (!isBusy && nowMs - lastAnswerMs > patienceMs)) {
        throw new BulkFailure(`no server has answered for ${String(Math.round((nowMs - lastAnswerMs) / 1000))} s`);
      }
      await pause(20, undefined, { signal: ended }).catch(() => undefined);
    }
  }

  async function ask(server: Server, texts: readonly string[], ended: AbortSignal): Promise<Embedded> {
    server.client ??= await open(server);
    if (server.failures > 0 && identityOf(server.client, wish) !== identity) {
      server.isRefused = true;
      onNote(`${server.url} serves another model now and is left out`);
      throw new StaleServer();
    }
    return askClient(server.client, texts, wish, ended);
  }

  async function embed(texts: readonly string[], ended: AbortSignal): Promise<Embedded> {
    for (;;) {
      const server = await takeServer(ended);
      try {
        const answer = await ask(server, texts, ended);
        if (server.failures > 0) onNote(`${server.url} answers again`);
        server.failures = 0;
        lastAnswerMs = performance.now();
        return answer;
      } catch (error) {
        ended.throwIfAborted();
        if (error instanceof StaleServer) continue;
        if (!isWorthRetrying(error)) throw new BulkFailure(`${server.url}: ${messageOf(error)}`);
        const waitMs = waitOf(error);
        if (waitMs === null) leaveOut(server, error, onNote);
        else {
          // It is there, and busy with others.
          lastAnswerMs = performance.now();
          server.freeAtMs = lastAnswerMs + waitMs;
        }
      } finally {
        server.calls -= 1;
      }
    }
  }

  return {
    identity,
    dimension,
    parallelCalls: servers.length * callsPerServer,
    embed: async (texts, ended) => (texts.length === 0 ? nothing(wish) : embed(texts, ended)),
    async close() {
      await Promise.all(servers.flatMap(({ client }) => (client === null ? [] : [client.close()])));
    },
  };
}

class StaleServer extends Error {}

const identityOf = (client: Client, { method, model }: VectorWish): string =>
  client.identity(capabilities[method], model ?? undefined) ?? 'unknown';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function problemsOf(servers: readonly Server[], wish: VectorWish): string[] {
  const capability = capabilities[wish.method];
  return servers.flatMap(({ url, client }) => {
    if (client === null) return [];
    if (client.capabilities[capability] === undefined) return [`--url: ${url} does not offer ${wish.method} vectors`];
    return [`--url: servers must serve one model; ${url} serves ${identityOf(client, wish)}`];
  });
}

/** An error of the client knows; what else a call throws is a fault of this program. */
const isWorthRetrying = (error: unknown): boolean => isRcpError(error) && error.retryable;
const isRcpError = (error: unknown): error is RcpError => error instanceof Error && error.name === 'RcpError';

/** Time after which a busy server wants to be asked again; null where it does not say. @unit ms */
const waitOf = (error: unknown): number | null =>
  isRcpError(error) && error.errorName === 'overloaded' ? (error.data.retryAfterMs ?? firstWaitMs) : null;

function leaveOut(server: Server, error: unknown, onNote: (note: string) => void): void {
  const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** server.failures);
  if (server.failures === 0) onNote(`${server.url} is left out for now: ${messageOf(error)}`);
  server.failures += 1;
  server.freeAtMs = performance.now() + waitMs;
  // What it serves is asked again: it may come back as another.
  server.client = null;
}

async function askClient(
  client: Client,
  texts: readonly string[],
  { method, kind, model, dimensions }: VectorWish,
  signal: AbortSignal,
): Promise<Embedded> {
  const named = { kind, signal, ...(model === null ? {} : { model }) };
  // Servers of others take no priority, and a list goes behind single texts anyhow.
  const options = client.info['x-trivec'] === undefined ? named : { ...named, priority: 'bulk' as const };
  switch (method) {
    case 'dense': {
      const cut = dimensions === null ? {} : { dimensions };
      const { vectors, usage } = await client.embed(texts, { ...options, ...cut });
      return { vectors: { kind: 'dense', vectors }, tokens: usage.inputTokens };
    }
    case 'sparse': {
      const { sparse, usage } = await client.sparseEmbed(texts, options);
      const rows = sparse.map(({ indices, values }) => ({ indices: Int32Array.from(indices), values }));
      return { vectors: { kind: 'sparse', sparse: rows }, tokens: usage.inputTokens };
    }
    case 'multi': {
      const { matrices, dimension, usage } = await client.multiVector(texts, options);
      return {
        vectors: { kind: 'multi', matrices: matrices.map((rows) => joined(rows, dimension)) },
        tokens: usage.inputTokens,
      };
    }
  }
}

function joined(rows: readonly Float32Array[], dimension: number): { values: Float32Array; dimension: number } {
  const values = new Float32Array(rows.length * dimension);
  for (const [row, vector] of rows.entries()) values.set(vector, row * dimension);
  return { values, dimension };
}
