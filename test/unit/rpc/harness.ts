/** Owns a protocol service over a fake scheduler: text in, parsed answers out. */
import { createInfoBuilder } from '../../../src/rpc/capabilities.ts';
import { createDispatcher, type RunTaskRequest } from '../../../src/rpc/dispatch.ts';
import type { EndedCall } from '../../../src/telemetry/record.ts';
import { createFrameService } from '../../../src/rpc/frames.ts';
import type { FrameContext, FrameService, Reply } from '../../../src/rpc/service.ts';
import { Session } from '../../../src/rpc/session.ts';
import type { ServedTasks } from '../../../src/task/context.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { createFakeScheduler, createServed, type FakeScheduler } from '../task/fakes.ts';

/** An answer, parsed. */
export interface Answer {
  readonly id: unknown;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data: Record<string, unknown> };
}

/** A service with everything around it. */
export interface Harness {
  readonly frames: FrameService;
  readonly run: RunTaskRequest;
  readonly scheduler: FakeScheduler;
  readonly clock: FakeClock;
  readonly records: EndedCall[];
  readonly notifications: string[];
  contextOf(rest?: Partial<FrameContext>): FrameContext;
  reply(text: string, rest?: Partial<FrameContext>): Promise<Reply>;
  /** The answer, parsed; undefined for silence. */
  ask(text: string, rest?: Partial<FrameContext>): Promise<unknown>;
  /** The answer to one request, id 1. */
  call(method: string, params?: unknown, rest?: Partial<FrameContext>): Promise<Answer>;
  drain(): void;
}

/** Limits small enough to pass. */
export const limits = {
  batchLimit: 4,
  maxCandidates: 4,
  maxBatchMembers: 8,
  bodyLimitBytes: 65_536,
  deadlineMs: 5000,
  maxAnswerBytes: 1_000_000,
};

/** Every kind of model; 4 dimensions, 16 tokens, one token per character and two special ones. */
export function allTasks(): ServedTasks {
  const tokens = createServed({ modelId: 'tokens' });
  return {
    embed: [createServed({ modelId: 'dense' }), createServed({ modelId: 'dense-2' })],
    sparseEmbed: [createServed({ modelId: 'sparse' })],
    multiVector: [tokens],
    rerankers: [
      { method: 'cross-encoder', served: createServed({ modelId: 'pairs' }) },
      { method: 'colbert', served: tokens },
    ],
  };
}

/** Rows that fit every head of `allTasks`. */
export const fittingScheduler = () =>
  createFakeScheduler((item, { key: { head } }) => {
    if (head === 'sparse') return { values: Float32Array.of(1), indices: Int32Array.of(item.ids[1] ?? 0) };
    if (head === 'logit' || head === 'maxSim') return { values: Float32Array.of(item.ids.length), indices: null };
    if (head === 'rows') return { values: new Float32Array(4 * item.ids.length).fill(0.5), indices: null };
    return { values: Float32Array.of(item.ids[1] ?? 0, 0, 0, 0), indices: null };
  });

/** A service over `tasks`. */
export function createHarness(tasks: ServedTasks = allTasks(), scheduler: FakeScheduler = fittingScheduler()): Harness {
  const clock = createFakeClock();
  const records: EndedCall[] = [];
  const notifications: string[] = [];
  let isDraining = false;
  const info = createInfoBuilder({ name: 'trivec', version: '0' }, tasks, limits, () => []);
  const dispatcher = createDispatcher({
    tasks,
    scheduler,
    info,
    clock,
    limits,
    isDraining: () => isDraining,
    onCall: (record) => records.push(record),
  });
  const frames = createFrameService(dispatcher, limits);
  const contextOf = (rest: Partial<FrameContext> = {}): FrameContext => ({
    transport: 'http',
    pathMethod: null,
    signal: new AbortController().signal,
    session: new Session({ isStateful: false, isInitialized: true }),
    notify: (frame) => notifications.push(frame),
    requestId: 'request-1',
    ...rest,
  });
  const reply = (text: string, rest?: Partial<FrameContext>) => frames.handleText(text, contextOf(rest));
  const ask = async (text: string, rest?: Partial<FrameContext>) => {
    const { body } = await reply(text, rest);
    return body === null ? undefined : (JSON.parse(body.toString()) as unknown);
  };
  return {
    frames,
    run: dispatcher.run,
    scheduler,
    clock,
    records,
    notifications,
    contextOf,
    reply,
    ask,
    call: async (method, params, rest) =>
      (await ask(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), rest)) as Answer,
    drain() {
      isDraining = true;
    },
  };
}

/** A session with the rules of stdio. */
export const stdioSession = (isInitialized: boolean) => new Session({ isStateful: true, isInitialized });
