/** Owns which server is asked next: the least busy one that answers; and when to give all of them up. */
import { setTimeout as pause } from 'node:timers/promises';
import { shownAddress } from '../../client/address.ts';
import type { RcpError } from '../../client/index.ts';
import { BulkFailure } from '../row.ts';
import { messageOf, waitAskedMs, type Client } from './server-call.ts';

/** Calls under way at each server. */
export const callsPerServer = 2;
/** First wait before a server that failed is tried again; doubled each time. @unit ms */
const firstWaitMs = 500;
/** @unit ms */
const longestWaitMs = 30_000;
/** Least wait behind a refusal, whatever the server says of it. @unit ms */
const leastWaitMs = 200;
/** Time in which nothing but refusals comes, before it is told. @unit ms */
const noteOverloadAfterMs = 5000;
/** Time between two looks for a free server. @unit ms */
const lookEveryMs = 20;

/** A server, as it is now. */
export interface Server {
  readonly url: string;
  /** The address without what may be secret in it. */
  readonly shown: string;
  /** null: what it serves has to be asked. */
  client: Client | null;
  calls: number;
  /** Failures since its last answer. */
  failures: number;
  /** Not before this time. @unit ms */
  freeAtMs: number;
  /** Never again. */
  isRefused: boolean;
}

/** The servers of a run. */
export interface ServerPool {
  readonly servers: readonly Server[];
  /**
   * A server that may be asked now; waits for it. It counts as asked until it is given back.
   * @throws BulkFailure where none has answered for too long, or none is left; the signal's reason
   */
  take(ended: AbortSignal): Promise<Server>;
  giveBack(server: Server): void;
  /** It has answered. */
  answered(server: Server): void;
  /** It could not answer with this client, and is left out for a while. */
  failed(server: Server, used: Client | null, error: unknown): void;
  /** It is there and full, and says after which time to come back. */
  overloaded(server: Server, error: RcpError): void;
  /** It gives nothing that this run can use, whatever the reason. */
  refuse(server: Server, reason: string): void;
}

/** A pool of the servers at these addresses. */
export function createServerPool(
  urls: readonly string[],
  { patienceMs, onNote }: { readonly patienceMs: number; readonly onNote: (note: string) => void },
): ServerPool {
  const servers = [...new Set(urls)].map((url): Server => ({
    url,
    shown: shownAddress(url),
    client: null,
    calls: 0,
    failures: 0,
    freeAtMs: 0,
    isRefused: false,
  }));
  // Idle time is no failure: what counts begins with the first one behind the last answer.
  let failingSinceMs: number | null = null;
  let isOverloadTold = false;

  const find = (nowMs: number): Server | null => {
    const usable = servers.filter(({ isRefused }) => !isRefused);
    if (usable.length === 0) throw new BulkFailure('no server is left that serves the model of this run');
    const failingMs = failingSinceMs === null ? 0 : nowMs - failingSinceMs;
    if (failingMs > patienceMs) {
      // What is under way may still be answered; nothing else is begun.
      if (usable.some(({ calls }) => calls > 0)) return null;
      throw new BulkFailure(`no server has answered for ${String(Math.round(failingMs / 1000))} s`);
    }
    const free = usable.filter(({ freeAtMs, calls }) => freeAtMs <= nowMs && calls < callsPerServer);
    return free.sort((a, b) => a.calls - b.calls || a.failures - b.failures)[0] ?? null;
  };

  return {
    servers,
    async take(ended) {
      for (;;) {
        ended.throwIfAborted();
        const found = find(performance.now());
        if (found !== null) {
          // Counted at once: others look for one before this call has begun.
          found.calls += 1;
          return found;
        }
        await pause(lookEveryMs, undefined, { signal: ended }).catch(() => undefined);
      }
    },
    giveBack(server) {
      server.calls -= 1;
    },
    answered(server) {
      if (server.failures > 0 || isOverloadTold) onNote(`${server.shown} answers again`);
      server.failures = 0;
      failingSinceMs = null;
      isOverloadTold = false;
    },
    failed(server, used, error) {
      const nowMs = performance.now();
      failingSinceMs ??= nowMs;
      // Another call has found out before.
      if (server.client !== used) return;
      if (server.failures === 0) onNote(`${server.shown} is left out for now: ${messageOf(error)}`);
      server.freeAtMs = nowMs + Math.min(longestWaitMs, firstWaitMs * 2 ** server.failures);
      server.failures += 1;
      // What it serves is asked again: it may come back as another.
      server.client = null;
    },
    overloaded(server, error) {
      const nowMs = performance.now();
      failingSinceMs ??= nowMs;
      server.freeAtMs = Math.max(server.freeAtMs, nowMs + waitAskedMs(error, leastWaitMs));
      if (isOverloadTold || nowMs - failingSinceMs < noteOverloadAfterMs) return;
      isOverloadTold = true;
      onNote(`${server.shown} is there but takes nothing: ${error.message}`);
    },
    refuse(server, reason) {
      if (!server.isRefused) onNote(`${server.shown} ${reason} and is left out`);
      server.isRefused = true;
      server.client = null;
    },
  };
}
