/** Owns a service for transport tests: it records what it is given and answers as each test says. */
import type { FrameContext, FrameService, Reply } from '../../../src/rpc/service.ts';
import { errorCatalogue } from '../../../src/errors.ts';
import { Session } from '../../../src/rpc/session.ts';

/** A reply around a JSON text. */
export const reply = (text: string | null, extra: Partial<Reply> = {}): Reply => ({
  body: text === null ? null : Buffer.from(text),
  retryAfterMs: null,
  isShutdown: false,
  ...extra,
});

export const newSession = (): Session => new Session({ isStateful: false, isInitialized: true });

export interface FakeService extends FrameService {
  /** Every frame that reached the service, in order. */
  readonly calls: { readonly text: string; readonly context: FrameContext }[];
  handle: (text: string, context: FrameContext) => Reply | Promise<Reply>;
  /** Resolves when the given number of frames has reached the service. */
  received(count: number): Promise<void>;
}

/** A service that echoes the text as a JSON string unless `handle` is replaced. */
export function createFakeService(): FakeService {
  const waiters: { count: number; resolve: () => void }[] = [];
  const service: FakeService = {
    calls: [],
    handle: (text) => reply(JSON.stringify({ echo: text })),
    async handleText(text, context) {
      service.calls.push({ text, context });
      for (const waiter of waiters) if (service.calls.length >= waiter.count) waiter.resolve();
      return await service.handle(text, context);
    },
    refuse: (errorName, message, rawId, retryAfterMs) =>
      reply(
        `{"jsonrpc":"2.0","id":${rawId ?? 'null'},"error":${JSON.stringify({
          code: errorCatalogue[errorName].code,
          message,
          data: { retryable: errorCatalogue[errorName].retryable, retryAfterMs },
        })}}`,
        { retryAfterMs: retryAfterMs ?? null },
      ),
    wantsProgress: (text) => text.includes('progressToken'),
    received: (count) =>
      new Promise((resolve) => {
        if (service.calls.length >= count) resolve();
        else waiters.push({ count, resolve });
      }),
  };
  return service;
}

/** A promise and the function that settles it. */
export function gate(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}
