/** Owns sessions: what has been initialized, and which calls of whom are in flight. */
import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../errors.ts';
import type { LogLevel } from './log-level.ts';

/** How HTTP callers share state: each on its own, or all in one session with the rules of stdio. */
export type HttpSessionMode = 'stateless' | 'single';

/** Most session tokens remembered at a time; the least recently used is forgotten first. */
export const maxHttpSessions = 1024;
/** Longest silence after which a session token is forgotten. */
export const maxHttpSessionIdleMs = 3_600_000;

/** Type-exact key of an id: `1` and `"1"` differ, `"1"` and `"\u0031"` do not. */
export function idKey(rawId: string): string {
  return rawId.startsWith('"') ? `string:${JSON.parse(rawId) as string}` : `number:${rawId}`;
}

/** One session: a stdio process, an HTTP session token, or one stateless HTTP request. */
export class Session {
  /** False where every request counts as initialized and `initialize` may be repeated. */
  readonly isStateful: boolean;
  /** Token to hand out on `initialize`; null where the session has none. */
  readonly createToken: (() => string) | null;
  isInitialized: boolean;
  /** Least level of `notifications/log` the client asked for; null without opt-in. */
  logLevel: LogLevel | null = null;
  readonly #isResetByShutdown: boolean;
  readonly #inFlight = new Map<string, Set<AbortController>>();

  constructor(options: {
    isStateful: boolean;
    isInitialized: boolean;
    isResetByShutdown?: boolean;
    createToken?: () => string;
  }) {
    this.isStateful = options.isStateful;
    this.isInitialized = options.isInitialized;
    this.createToken = options.createToken ?? null;
    this.#isResetByShutdown = options.isResetByShutdown ?? false;
  }

  /** Registers a call so that a cancel finds it; call the returned function when it has settled. */
  register(rawId: string, controller: AbortController): () => void {
    const key = idKey(rawId);
    const controllers = this.#inFlight.get(key) ?? new Set();
    controllers.add(controller);
    this.#inFlight.set(key, controllers);
    return () => {
      controllers.delete(controller);
      if (controllers.size === 0 && this.#inFlight.get(key) === controllers) this.#inFlight.delete(key);
    };
  }

  /** Aborts every call in flight with this id; an unknown id changes nothing. */
  cancel(rawId: string): void {
    for (const controller of this.#inFlight.get(idKey(rawId)) ?? []) {
      controller.abort(new ServiceError('cancelled', 'The call was cancelled'));
    }
  }

  /** Obeys `shutdown`: a session that outlives it goes back to the state before `initialize`, others stay. */
  shutDown(): void {
    if (!this.#isResetByShutdown) return;
    this.isInitialized = false;
    this.logLevel = null;
  }
}

/** Where transports get their sessions from. */
export interface SessionStore {
  /** Session of an HTTP request by its `RCP-Session` header; an unknown or missing token gives a fresh stateless one. */
  ofHttp(header: string | undefined): Session;
  ofStdio(): Session;
}

/** A store with bounded memory. */
export function createSessionStore(mode: HttpSessionMode): SessionStore {
  const byToken = new LRUCache<string, Session>({
    max: maxHttpSessions,
    ttl: maxHttpSessionIdleMs,
    updateAgeOnGet: true,
  });
  const single = new Session({ isStateful: true, isInitialized: false, isResetByShutdown: true });
  const createToken = () => {
    const token = randomBytes(18).toString('base64url');
    byToken.set(token, new Session({ isStateful: true, isInitialized: true }));
    return token;
  };
  return {
    ofHttp(header) {
      if (mode === 'single') return single;
      const known = header === undefined ? undefined : byToken.get(header);
      return known ?? new Session({ isStateful: false, isInitialized: true, createToken });
    },
    ofStdio: () => new Session({ isStateful: true, isInitialized: false }),
  };
}
