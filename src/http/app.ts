/** Owns the routes: which path goes where, and what every route has in common. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import type { Clock } from '../clock.ts';
import { systemClock } from '../clock.ts';
import type { Answer } from './answer.ts';
import { writeAnswer } from './answer.ts';
import type { Readiness } from './health.ts';
import { liveAnswer, readyAnswer } from './health.ts';
import type { Identify } from './key-ring.ts';
import { corsHeaders, hostOf, isHostAllowed, isHostWellFormed, isOriginAllowed } from './origin.ts';
import { basePath, pathMethodOf, rawPathOf } from './path.ts';
import type { RcpRouteOptions, RefusalReason } from './rcp-route.ts';
import { createRcpRoute, unauthorizedAnswer } from './rcp-route.ts';
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
  readonly log: { error(fields: Record<string, unknown>, message: string): void };
  readonly onRefused?: (reason: RefusalReason) => void;
  readonly clock?: Clock;
}

/** The application: RCP under `/rcp`, health, metrics, and 404 with an empty body for everything else. */
export type HttpApp = Hono<{ Bindings: HttpBindings }>;

const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';
const onlyGet: Answer = { status: 405, headers: { Allow: 'GET, HEAD' } };

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

  const route = (path: string, answer: (env: HttpBindings) => Answer | Promise<Answer>) => {
    app.all(path, async ({ env }) => {
      const isRead = env.incoming.method === 'GET' || env.incoming.method === 'HEAD';
      if (isRead) writeAnswer(env.outgoing, await answer(env));
      else await refuse(env, onlyGet, options.limits, clock);
      return RESPONSE_ALREADY_SENT;
    });
  };
  route('/health/live', liveAnswer);
  route('/health/ready', () => readyAnswer(options.readiness(), options.isDraining()));
  route('/metrics', async ({ incoming }) => {
    const { headers } = incoming;
    if (!isHostAllowed(hostOf(incoming), policy) || !isOriginAllowed(headers.origin, policy)) return { status: 403 };
    if (!options.metricsOpen && identify(headers.authorization) === null) return unauthorizedAnswer(service, null);
    return { status: 200, contentType: metricsContentType, body: await options.metricsText() };
  });

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
