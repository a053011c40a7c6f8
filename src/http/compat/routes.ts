/** Owns one request of another service's client over HTTP: refused, or parsed, run and answered as its family does. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { ServiceError } from '../../errors.ts';
import { openCall } from '../../rpc/call.ts';
import type { CountCall, RunTaskRequest } from '../../rpc/dispatch.ts';
import { readJson } from '../../rpc/json-text.ts';
import type { ServedFacts } from '../../rpc/served-facts.ts';
import type { CallTimes } from '../../telemetry/stages.ts';
import type { Answer } from '../answer.ts';
import { serverTimingHeader, writeAnswer } from '../answer.ts';
import { callContextOf } from '../call-context.ts';
import type { Caller } from '../key-ring.ts';
import { openPreflightHeaders } from '../origin.ts';
import type { Exchange, HeadRefusal, ReceiveParts, Received, Refusal } from '../receive.ts';
import { receive, refusalError, refusalOfHead, timedOutAnswer } from '../receive.ts';
import { refuse } from '../refuse.ts';
import { requestIdOf } from '../request-id.ts';
import type { CompatFamily } from './family.ts';
import { pathNameOf, routeFor, routeTable, type FamilyRoute, type PathEntry } from './route-table.ts';

/** What the families are served with. */
export interface CompatParts {
  readonly families: readonly CompatFamily[];
  readonly run: RunTaskRequest;
  readonly countCall: CountCall;
  readonly served: ServedFacts;
}

interface RouteParts extends CompatParts, ReceiveParts {
  readonly log: { error(fields: Record<string, unknown>, message: string): void };
  /** Paths at which something else answers what is only read. */
  readonly readPaths: ReadonlySet<string>;
}

/** Something that answers at a path, whatever the method. */
export interface CompatHandler {
  /** For the router: `*` in the place of a name. */
  readonly pattern: string;
  readonly handle: (incoming: IncomingMessage, outgoing: ServerResponse, path: string) => Promise<void>;
}

interface Request {
  readonly entry: PathEntry;
  readonly routes: readonly [FamilyRoute, ...FamilyRoute[]];
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly path: string;
}

const headMessages: Readonly<Record<HeadRefusal['refused'], string>> = {
  method: 'The path does not answer this method',
  host: 'The Host header names another server',
  origin: 'Pages of this origin may not call the server',
  encoding: 'The body must not be packed',
};

/** Handlers for every path of the families. */
export function createCompatHandlers(parts: RouteParts): readonly CompatHandler[] {
  const { policy, onRefused, limits, clock, served, log } = parts;

  const answerCall = async (
    { entry, routes, incoming, outgoing, path }: Request,
    received: { readonly text: string; readonly caller: Caller },
    callerSignal: AbortSignal,
  ): Promise<Answer & { readonly family: CompatFamily }> => {
    const startedMs = clock.nowMs();
    const times: CallTimes[] = [];
    const call = openCall({ callerSignal, clock, deadlineMs: served.limits.deadlineMs, register: null });
    let { family, route } = routes[0];
    const context = callContextOf(incoming, outgoing, received.caller, call.signal);
    let outcome = 'ok';
    try {
      const body = incoming.method === 'POST' ? jsonOf(received.text) : undefined;
      const chosen = routeFor(routes, body);
      ({ family, route } = chosen);
      const answer = await route.answer({
        incoming,
        body,
        bodyText: received.text,
        pathName: pathNameOf(entry, path),
        served,
        signal: call.signal,
        run: (request) => parts.run(request, context, (spent) => times.push(spent)),
      });
      return { ...withHeaders(answer, timingHeader(times, clock.nowMs() - startedMs)), family };
    } catch (thrown) {
      const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal', 'The server failed');
      outcome = error.errorName;
      if (error !== thrown) {
        log.error({ err: thrown, requestId: requestIdOf(outgoing) }, 'a compatible route failed because of a bug');
      }
      return { ...withHeaders(family.errorAnswer(error), timingHeader(times, clock.nowMs() - startedMs)), family };
    } finally {
      call.close();
      const { countsAs } = route;
      const latencyMs = clock.nowMs() - startedMs;
      // A task that ran has counted itself.
      if (countsAs !== undefined && times.length === 0)
        parts.countCall({ method: countsAs, outcome, latencyMs }, context);
    }
  };

  const respond = async (request: Request, received: Received, exchange: Exchange): Promise<void> => {
    const { routes, outgoing } = request;
    if ('refused' in received) {
      if (parts.isDraining()) outgoing.setHeader('Connection', 'close');
      const { refused, retryAfterMs } = received;
      const waitMs = refused === 'draining' ? drainRetryAfterMs : retryAfterMs;
      const answer = routes[0].family.errorAnswer(refusalError(refused, limits, waitMs));
      writeAnswer(outgoing, { ...answer, ...statusOfRefusal(refused, answer) });
      return;
    }
    const { family, ...built } = await answerCall(request, received, exchange.signal);
    if (exchange.signal.aborted) return;
    const hasRoom = exchange.claimAnswer(built.body === undefined ? 0 : Buffer.byteLength(built.body));
    if (!hasRoom) onRefused('crowded');
    if (parts.isDraining()) outgoing.setHeader('Connection', 'close');
    writeAnswer(outgoing, hasRoom ? built : family.errorAnswer(refusalError('crowded', limits)));
  };

  const handle = async (
    entry: PathEntry,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    path: string,
  ): Promise<void> => {
    const methods = parts.readPaths.has(entry.path) ? ['GET', 'HEAD', ...entry.methods] : entry.methods;
    const routes = entry.routes.get(incoming.method ?? '') ?? [...entry.routes.values()][0];
    if (routes === undefined) throw new Error(`nothing answers at ${entry.path}`);
    const refusal = refusalOfHead(incoming, methods, policy);
    if (refusal !== null) {
      const { refused, status, headers } = refusal;
      onRefused(refused);
      const error = routes[0].family.errorAnswer(new ServiceError('invalidRequest', headMessages[refused]));
      await refuse({ incoming, outgoing }, { ...withHeaders(error, headers), status }, limits, clock);
      return;
    }
    if (incoming.method === 'OPTIONS') {
      const isPreflight = incoming.headers.origin !== undefined;
      const requested = incoming.headers['access-control-request-headers'];
      const allow = { Allow: [...methods, 'OPTIONS'].join(', ') };
      writeAnswer(outgoing, { status: 204, headers: isPreflight ? openPreflightHeaders(requested) : allow });
      return;
    }
    await receive(parts, incoming, outgoing, (received, exchange) =>
      respond({ entry, routes, incoming, outgoing, path }, received, exchange),
    );
  };

  return routeTable(parts.families).map((entry) => ({
    pattern: entry.prefix === null ? entry.path : `${entry.prefix}*`,
    handle: (incoming, outgoing, path) => handle(entry, incoming, outgoing, path),
  }));
}

/** When a caller that met a server on its way out should try again. @unit ms */
const drainRetryAfterMs = 1000;

/** What HTTP itself wants of some refusals. */
function statusOfRefusal(refused: Refusal, { headers }: Answer): Partial<Answer> {
  if (refused === 'timeout')
    return { status: timedOutAnswer.status, headers: { ...headers, ...timedOutAnswer.headers } };
  if (refused === 'unauthorized') return { status: 401, headers: { ...headers, 'WWW-Authenticate': 'Bearer' } };
  return {};
}

const withHeaders = (answer: Answer, headers: OutgoingHttpHeaders = {}): Answer => ({
  ...answer,
  headers: { ...answer.headers, ...headers },
});

/** Deepest nesting of a body: answers give documents back, and what reads these needs stack for each level. */
const maxDepth = 256;

/** @throws parse, tooLarge, invalidRequest */
function jsonOf(text: string): unknown {
  const read = readJson(text);
  if ('errorName' in read) throw new ServiceError(read.errorName, read.message);
  if (read.scan.depth <= maxDepth) return read.value;
  throw new ServiceError('invalidRequest', `The JSON is nested deeper than ${maxDepth}`);
}

/** Where the time of a call went, over all that it has run. */
function timingHeader(times: readonly CallTimes[], totalMs: number): OutgoingHttpHeaders {
  if (times.length === 0) return {};
  const sumOf = (name: 'tokenizeMs' | 'queueMs' | 'runMs') => {
    const known = times.flatMap((each) => each[name] ?? []);
    return known.length === 0 ? null : known.reduce((sum, ms) => sum + ms, 0);
  };
  return serverTimingHeader({
    tokenizeMs: sumOf('tokenizeMs'),
    queueMs: sumOf('queueMs'),
    runMs: sumOf('runMs'),
    totalMs,
  });
}
