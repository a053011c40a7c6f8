/** Owns getting vectors from servers: spread over all that answer, with those that do not tried again later. */
import { setTimeout as pause } from 'node:timers/promises';
import { connect, RcpError } from '../../client/index.ts';
import { ConfigurationError } from '../../errors.ts';
import { BulkFailure } from '../row.ts';
import { nothing } from './nothing.ts';
import { joinParts, partFrom } from './parts.ts';
import { refusedText, type Embedded, type VectorSource, type VectorWish } from './source.ts';
import {
  askClient,
  capabilities,
  identityOf,
  isOverload,
  isWorthRetrying,
  limitsOf,
  messageOf,
  waitAskedMs,
  type Answer,
  type Client,
} from './server-call.ts';
import { callsPerServer, createServerPool, type Server } from './server-pool.ts';
import { SilentServer, watched } from './watch.ts';

/** How servers are used. */
export interface ServersOptions {
  readonly urls: readonly string[];
  readonly apiKey: string | null;
  readonly wish: VectorWish;
  /** Longest time from a failure on in which no server gives anything, before the run is given up. @unit ms */
  readonly patienceMs: number;
  /** Longest time for one answer. @unit ms */
  readonly answerTimeoutMs: number;
  /** Longest time for a sign of life, be it what a server serves or that it is still there. @unit ms */
  readonly silenceMs: number;
  /** Told of servers that are left out and of those that are back. */
  readonly onNote: (note: string) => void;
}

/** Least wait before a server that turns calls away is asked again what it serves. @unit ms */
const leastOpenWaitMs = 500;

/**
 * A source over servers that all serve the same model.
 * @throws ConfigurationError where they do not, or do not offer what is asked for; BulkFailure where none can be reached
 */
export async function openServers(options: ServersOptions, signal: AbortSignal): Promise<VectorSource> {
  const { wish } = options;
  const pool = createServerPool(options.urls, options);
  const { servers } = pool;
  const opened = await Promise.allSettled(servers.map(({ url }) => openClient(url, options, signal)));
  const failures: string[] = [];
  for (const [position, outcome] of opened.entries()) {
    const server = servers[position] as Server;
    if (outcome.status === 'fulfilled') server.client = outcome.value;
    else {
      signal.throwIfAborted();
      const line = `${server.shown}: ${messageOf(outcome.reason)}`;
      if (!isForLater(outcome.reason)) throw new ConfigurationError([line]);
      failures.push(line);
      pool.failed(server, null, outcome.reason);
    }
  }
  const first = servers.map(({ client }) => client).find((client) => client !== null);
  if (first === undefined)
    throw new BulkFailure(`no server can be reached\n${failures.map((line) => `  ${line}`).join('\n')}`);
  await requireAgreement(servers, wish, signal);
  const identity = identityOf(first, wish);
  const offered = first.capabilities[capabilities[wish.method]];
  const dimension = wish.dimensions ?? (offered !== undefined && 'dimension' in offered ? offered.dimension : 0);

  /** Refuses a server that serves another model by now. */
  const isOther = (server: Server, client: Client): boolean => {
    const found = identityOf(client, wish);
    if (found !== identity) pool.refuse(server, `serves another model now, ${found},`);
    return found !== identity;
  };

  /** The client of a server; null where the server cannot be used. */
  async function clientOf(server: Server, ended: AbortSignal): Promise<Client | null> {
    if (server.client !== null) return server.client;
    const client = await openClient(server.url, options, ended);
    if (isOther(server, client)) return null;
    // Another call may have opened one meanwhile.
    return (server.client ??= client);
  }

  /** Whether the answer is of the model of this run, which a server may change from one call to the next. */
  async function isOurs(server: Server, answer: Answer, ended: AbortSignal): Promise<boolean> {
    const { vectors } = answer;
    if (vectors.kind === 'dense' && vectors.vectors.some(({ length }) => length !== dimension)) {
      pool.refuse(server, `answers with vectors of another length than ${String(dimension)}`);
      return false;
    }
    if (answer.isIdentityTold) {
      if (answer.identity !== identity) pool.refuse(server, `answers with another model now, ${answer.identity},`);
      return answer.identity === identity;
    }
    // It was of this run's when it was last asked: if it still is, it was so in between.
    return !isOther(server, await openClient(server.url, options, ended));
  }

  interface Part extends Embedded {
    readonly end: number;
  }

  /** The vectors of the texts from a place on, as many as a request holds; null where another server has to be asked. */
  async function ask(
    server: Server,
    texts: readonly string[],
    start: number,
    ended: AbortSignal,
  ): Promise<Part | null> {
    const before = server.client;
    let used: Client | null = before;
    try {
      const client = (used = await clientOf(server, ended));
      if (client === null) return null;
      const part = partFrom(texts, start, limitsOf(client, wish));
      const call = (stop: AbortSignal) => askClient(client, part, wish, stop);
      const answer = await watched(client, options.silenceMs, ended, call);
      if (!(await isOurs(server, answer, ended))) return null;
      pool.answered(server);
      return { ...answer, end: start + part.length };
    } catch (error) {
      ended.throwIfAborted();
      if (isOverload(error)) pool.overloaded(server, error);
      else if (isForLater(error)) pool.failed(server, used, error);
      else if (!(await servesAnother(server, ended))) throw failureOf(server, error, start);
      return null;
    }
  }

  /** Whether a server that refused is another one by now. */
  async function servesAnother(server: Server, ended: AbortSignal): Promise<boolean> {
    const client = await openClient(server.url, options, ended).catch(() => null);
    return client !== null && isOther(server, client);
  }

  async function embed(texts: readonly string[], ended: AbortSignal): Promise<Embedded> {
    const parts: Embedded[] = [];
    for (let done = 0; done < texts.length;) {
      const server = await pool.take(ended);
      try {
        const part = await ask(server, texts, done, ended);
        if (part === null) continue;
        parts.push(part);
        done = part.end;
      } finally {
        pool.giveBack(server);
      }
    }
    return joinParts(parts, wish);
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

/**
 * A client that has read what a server serves; one that turns calls away is asked again, but not for long.
 * @throws RcpError; SilentServer; the signal's reason
 */
async function openClient(
  url: string,
  { apiKey, answerTimeoutMs, silenceMs, onNote }: ServersOptions,
  signal: AbortSignal,
): Promise<Client> {
  const late = AbortSignal.timeout(silenceMs);
  const either = AbortSignal.any([signal, late]);
  for (;;) {
    try {
      return await connect(url, {
        signal: either,
        // What may succeed later is tried at whichever server is free then.
        retry: { maxAttempts: 1 },
        maxParallelRequests: callsPerServer,
        answerTimeoutMs,
        ...(apiKey === null ? {} : { apiKey }),
        onWarning: onNote,
      });
    } catch (error) {
      signal.throwIfAborted();
      if (hasAborted(late)) throw new SilentServer(`no answer within ${String(silenceMs / 1000)} s`);
      if (!isOverload(error)) throw error;
      await pause(Math.min(silenceMs, waitAskedMs(error, leastOpenWaitMs)), undefined, { signal: either }).catch(
        () => undefined,
      );
      if (hasAborted(late)) throw error;
    }
  }
}

const hasAborted = ({ aborted }: AbortSignal): boolean => aborted;

/** What may be otherwise later; anything else that a call throws is final. */
const isForLater = (error: unknown): boolean => error instanceof SilentServer || isWorthRetrying(error);

function failureOf(server: Server, error: unknown, start: number): Error {
  if (!(error instanceof RcpError)) return error instanceof Error ? error : new Error(String(error));
  return refusedText(error, error.data.field, start) ?? new BulkFailure(`${server.shown}: ${error.message}`);
}

/**
 * Goes on only where all servers that were reached offer what is asked for, of one model.
 * @throws ConfigurationError
 */
async function requireAgreement(servers: readonly Server[], wish: VectorWish, signal: AbortSignal): Promise<void> {
  const capability = capabilities[wish.method];
  const reached = servers.flatMap(({ shown, client }) => (client === null ? [] : [{ url: shown, client }]));
  const lacking = reached.filter(({ client }) => client.capabilities[capability] === undefined);
  if (lacking.length > 0) {
    throw new ConfigurationError(lacking.map(({ url }) => `--url: ${url} does not offer ${wish.method} vectors`));
  }
  const judged = await Promise.allSettled(reached.map(({ client }) => askClient(client, [], wish, signal)));
  const problems = judged.flatMap((outcome, position) =>
    outcome.status === 'fulfilled' ? [] : [`${reached[position]?.url ?? ''}: ${messageOf(outcome.reason)}`],
  );
  if (problems.length > 0) throw new ConfigurationError(problems);
  const identities = reached.map(({ url, client }) => ({ url, identity: identityOf(client, wish) }));
  if (new Set(identities.map(({ identity }) => identity)).size <= 1) return;
  throw new ConfigurationError(
    identities.map(({ url, identity }) => `--url: servers must serve one model; ${url} serves ${identity}`),
  );
}
