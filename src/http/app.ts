/** Owns the routes: which path goes where, and what every route has in common. */
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import type { Clock } from '../clock.ts';
import { systemClock } from '../clock.ts';
import type { Answer } from './answer.ts';
import { writeAnswer } from './answer.ts';
import { createCompatHandlers, type CompatParts } from './compat/routes.ts';
import { consoleAnswer, type ConsoleFiles } from './console.ts';
import type { Readiness } from './health.ts';
import { emptyReadyAnswer, liveAnswer, readyAnswer } from './health.ts';
import type { Identify } from './key-ring.ts';
import {
  corsHeaders,
  hostOf,
  isHostAllowed,
  isHostWellFormed,
  isOriginAllowed,
  openPreflightHeaders,
} from './origin.ts';
import { openapiPath } from './openapi/document.ts';
import { basePath, pathMethodOf, rawPathOf } from './path.ts';
import type { RcpRouteOptions } from './rcp-route.ts';
import { createRcpRoute, unauthorizedAnswer } from './rcp-route.ts';
import type { RefusalReason } from './refuse.ts';
import { refuse } from './refuse.ts';
import { nameRequest, requestIdOf } from './request-id.ts';

/** What the HTTP side of the server is made of. */
export interface HttpAppOptions extends Pick<
  RcpRouteOptions,
  'service' | 'sessions' | 'limits' | 'memory' | 'isDraining'
> {
  readonly readiness: () => Readiness;
  /** All metrics in the Prometheus text format. */
  readonly metricsText: () => string | Promise<string>;
  readonly identify: Identify;
  readonly corsOrigins: readonly string[];
  readonly allowedHosts: readonly string[] | null;
  readonly isLoopbackBind: boolean;
  /** Whether `/metrics` is readable without the key. */
  readonly metricsOpen: boolean;
  /** The console's files by path; null or absent where there is no console. */
  readonly consoleFiles?: ConsoleFiles | null;
  /** The description of all routes as JSON; null or absent where there is none. */
  readonly openapi?: Buffer | null;
  /** The routes of other services' clients; null or absent where there are none. */
  readonly compat?: CompatParts | null;
  readonly log: { error(fields: Record<string, unknown>, message: string): void };
  readonly onRefused?: (reason: RefusalReason) => void;
  readonly clock?: Clock;
}

/** The application: RCP under `/rcp`, health, metrics, the console, other services' routes, and 404 with an empty body for everything else. */
export type HttpApp = Hono<{ Bindings: HttpBindings }>;

const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';
const allowRead = { Allow: 'GET, HEAD, OPTIONS' };
const onlyGet: Answer = { status: 405, headers: allowRead };

/** What OPTIONS is told at a path that is only read: a page that sends a key asks first. */
function readOptionsAnswer({ headers }: IncomingMessage): Answer {
  const requested = headers['access-control-request-headers'];
  const preflight = openPreflightHeaders(requested, ['GET', 'HEAD']);
  return { status: 204, headers: headers.origin === undefined ? allowRead : preflight };
}

/** An application that writes every answer itself, byte for byte, and leaves to Hono what it is for: the routing. */
export function createHttpApp(options: HttpAppOptions): HttpApp {
  const { service, identify, corsOrigins, allowedHosts, isLoopbackBind, clock = systemClock } = options;
  const policy = { corsOrigins, allowedHosts, isLoopbackBind };
  const onRefused = options.onRefused ?? (() => undefined);
  const rcpRoute = createRcpRoute({ ...options, policy, onRefused, clock });
  const app: HttpApp = new Hono({ getPath: (request) => rawPathOf(request.url) });

  app.use('*', async ({ env }, next) => {
    const { incoming, outgoing } = env;
    nameRequest(incoming, outgoing);
    const host = hostOf(incoming);
    if (!isHostWellFormed(host)) {
      onRefused('host');
      await refuse(env, { status: isHostAllowed(host, policy) ? 400 : 403 }, options.limits, clock);
      return RESPONSE_ALREADY_SENT;
    }
    const headers = Object.entries(corsHeaders(incoming.headers.origin, policy));
    for (const [name, value] of headers) outgoing.setHeader(name, value ?? '');
    await next();
    return undefined;
  });

  app.all(`${basePath}/*`, async ({ env, req }) => {
    await rcpRoute(env.incoming, env.outgoing, pathMethodOf(req.path));
    return RESPONSE_ALREADY_SENT;
  });

  const isWelcome = (incoming: IncomingMessage): boolean => {
    const host = hostOf(incoming);
    return isHostAllowed(host, policy) && isOriginAllowed(incoming.headers.origin, policy, host);
  };
  /** A path that is only read; `mayAsk` judges who is told what may be asked there. */
  const route = (path: string, answer: (env: HttpBindings) => Answer | Promise<Answer>, mayAsk = isWelcome) => {
    app.all(path, async ({ env }) => {
      const { incoming, outgoing } = env;
      const { method = '' } = incoming;
      if (method === 'GET' || method === 'HEAD') writeAnswer(outgoing, await answer(env));
      else if (method === 'OPTIONS')
        writeAnswer(outgoing, mayAsk(incoming) ? readOptionsAnswer(incoming) : { status: 403 });
      else await refuse(env, onlyGet, options.limits, clock);
      return RESPONSE_ALREADY_SENT;
    });
  };
  // Open to every caller, and so is the question about them.
  const everybody = () => true;
  route('/health/live', liveAnswer, everybody);
  route('/health', () => emptyReadyAnswer(options.readiness(), options.isDraining()), everybody);
  route('/health/ready', () => readyAnswer(options.readiness(), options.isDraining()), everybody);
  route('/metrics', async ({ incoming }) => {
    if (!isWelcome(incoming)) return { status: 403 };
    if (!options.metricsOpen && identify(incoming.headers.authorization) === null)
      return unauthorizedAnswer(service, null);
    return { status: 200, contentType: metricsContentType, body: await options.metricsText() };
  });
  const { openapi } = options;
  // Open like health: it says how to talk to the server, and holds nothing that anyone said to it.
  if (openapi) {
    route(openapiPath, ({ incoming }) => (isWelcome(incoming) ? { status: 200, body: openapi } : { status: 403 }));
  }

  for (const [path, file] of options.consoleFiles ?? []) {
    const answer = ({ incoming }: HttpBindings): Answer =>
      isWelcome(incoming) ? consoleAnswer(file, incoming.headers['if-none-match']) : { status: 403 };
    // Only to be read here: what is posted to the root is a call.
    if (path === '/') {
      app.get(path, ({ env }) => {
        writeAnswer(env.outgoing, answer(env));
        return RESPONSE_ALREADY_SENT;
      });
    } else route(path, answer);
  }

  if (options.compat) {
    const readPaths = new Set(options.consoleFiles?.keys());
    const handlers = createCompatHandlers({ ...options, ...options.compat, policy, onRefused, clock, readPaths });
    for (const { pattern, handle } of handlers) {
      app.all(pattern, async ({ env, req }) => {
        await handle(env.incoming, env.outgoing, req.path);
        return RESPONSE_ALREADY_SENT;
      });
    }
  }

  app.notFound(async ({ env }) => {
    await refuse(env, { status: 404 }, options.limits, clock);
    return RESPONSE_ALREADY_SENT;
  });
  app.onError((error, { env: { outgoing } }) => {
    options.log.error({ err: error, requestId: requestIdOf(outgoing) }, 'a request failed without an answer');
    // Half an event stream can only be cut: ending it would look like a complete answer.
    if (outgoing.headersSent) outgoing.destroy();
    else writeAnswer(outgoing, { status: 500 });
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}
