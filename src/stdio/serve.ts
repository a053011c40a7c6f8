/** Owns one stdio session: frames in, answers out, and its end by EOF, shutdown, stop or a vanished reader. */
import { randomUUID } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { CancelTimer, Clock } from '../clock.ts';
import type { FrameService, Reply } from '../rpc/service.ts';
import type { SessionStore } from '../rpc/session.ts';
import type { Frame } from './frame-reader.ts';
import { createFrameReader } from './frame-reader.ts';
import { createFrameWriter } from './frame-writer.ts';
import { maxIdSearchBytes, recoverId } from '../rpc/recover-id.ts';
import { namesShutdown } from './shutdown.ts';

/** Where a session reports what its caller cannot see. */
export interface StdioLog {
  info(fields: Record<string, unknown>, message: string): void;
  error(fields: Record<string, unknown>, message: string): void;
}

/** What a stdio session needs. */
export interface StdioOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly service: FrameService;
  readonly sessions: Pick<SessionStore, 'ofStdio'>;
  readonly clock: Clock;
  readonly limits: {
    /** Longest line. @unit bytes */
    readonly frameBytes: number;
    /** Frames handled at the same time; reading pauses above it. */
    readonly maxInFlightFrames: number;
    /** How long accepted work may go on after EOF. @unit ms */
    readonly drainMs: number;
    /** How long it may go on after a shutdown. @unit ms */
    readonly shutdownMs: number;
  };
  readonly log: StdioLog;
}

/** A running stdio session. */
export interface StdioServer {
  /** Resolves, never rejects, when the last answer has been handed over. */
  readonly finished: Promise<void>;
  /** Stops reading at once and lets running frames finish within `maxStopMs`. */
  stop(reason: string): void;
}

/** Time for running frames after `stop`: a terminated process must be gone within a second. @unit ms */
export const maxStopMs = 500;
/** Time for aborted frames to answer that they were cancelled. @unit ms */
export const abortGraceMs = 100;

/** `reading` starts what arrives, `draining` (EOF) starts only what had arrived, `stopping` starts nothing. */
type Phase = 'reading' | 'draining' | 'stopping' | 'finished';
const phaseOrder: readonly Phase[] = ['reading', 'draining', 'stopping', 'finished'];

/** Serves one session over two streams; frames run concurrently and answer in the order in which they are done. */
export function serveStdio(options: StdioOptions): StdioServer {
  const { input, service, clock, limits, log } = options;
  const session = options.sessions.ofStdio();
  const reader = createFrameReader(limits.frameBytes);
  const writer = createFrameWriter(options.output, { onDrain: () => pump(), onGone: () => leave() });
  const queue: Frame[] = [];
  const inFlight = new Set<AbortController>();
  const { promise: finished, resolve: resolveFinished } = deferred();
  let phase: Phase = 'reading';
  let isShutdownPending = false;
  let lastAnswer: Buffer | null = null;
  let closeAtMs = Infinity;
  let cancelTimer: CancelTimer = () => undefined;

  /** The only place where the phase changes; it never goes back. */
  const enter = (next: Phase): boolean => {
    if (phaseOrder.indexOf(next) <= phaseOrder.indexOf(phase)) return false;
    phase = next;
    input.pause();
    if (next !== 'draining') queue.length = 0;
    return true;
  };

  /** Bounds the time left; an earlier bound stays. */
  const closeWithin = (boundMs: number) => {
    const atMs = clock.nowMs() + boundMs;
    if (atMs >= closeAtMs) return;
    closeAtMs = atMs;
    cancelTimer();
    cancelTimer = clock.after(boundMs, () => {
      enter('stopping');
      for (const caller of inFlight) caller.abort();
      cancelTimer = clock.after(abortGraceMs, () => void finish());
      pump();
    });
  };

  const finish = async () => {
    if (!enter('finished')) return;
    cancelTimer();
    input.off('data', onData).off('end', onEnd).off('close', onEnd);
    if (lastAnswer !== null) writer.write(lastAnswer);
    const leftMs = Math.max(abortGraceMs, Math.min(closeAtMs - clock.nowMs(), limits.drainMs));
    const cancelFlushLimit = clock.after(leftMs, resolveFinished);
    await writer.flush();
    cancelFlushLimit();
    resolveFinished();
  };

  const leave = () => {
    for (const caller of inFlight) caller.abort();
    void finish();
  };

  const answer = (reply: Reply) => {
    if (phase === 'finished') return;
    if (!reply.isShutdown) {
      if (reply.body !== null) writer.write(reply.body);
      return;
    }
    lastAnswer = reply.body;
    enter('stopping');
    closeWithin(limits.shutdownMs);
  };

  const run = async (text: string) => {
    const caller = new AbortController();
    inFlight.add(caller);
    const requestId = randomUUID();
    const isBarrier = namesShutdown(text);
    isShutdownPending ||= isBarrier;
    const notify = (frame: string) => {
      if (inFlight.has(caller) && phase !== 'finished') writer.notify(frame);
    };
    try {
      const { signal } = caller;
      const context = { transport: 'stdio', pathMethod: null, signal, session, notify, requestId } as const;
      const reply = await service.handleText(text, context);
      inFlight.delete(caller);
      answer(reply);
    } catch (error) {
      log.error({ err: error, requestId }, 'a frame failed without an answer');
      const head = Buffer.from(text.slice(0, maxIdSearchBytes));
      answer(service.refuse('internal', 'The server failed; the details are in its log', recoverId(head)));
    } finally {
      inFlight.delete(caller);
      if (isBarrier) isShutdownPending = false;
      pump();
    }
  };

  const start = (frame: Frame) => {
    if (frame.kind === 'text') void run(frame.text);
    else if (frame.kind === 'notUtf8') answer(service.refuse('parse', 'The line is not valid UTF-8', null));
    else answer(service.refuse('tooLarge', `The line is over ${String(limits.frameBytes)} bytes`, frame.rawId));
  };

  const canStart = () => !isShutdownPending && inFlight.size < limits.maxInFlightFrames && !writer.isFull();

  const pump = () => {
    while (canStart()) {
      const frame = queue.shift();
      if (frame === undefined) break;
      start(frame);
    }
    if (phase === 'reading') {
      if (canStart()) input.resume();
      else input.pause();
    } else if (queue.length === 0 && inFlight.size === 0) void finish();
  };

  const onData = (chunk: Buffer) => {
    if (phase !== 'reading') return;
    for (const frame of reader.push(chunk)) queue.push(frame);
    pump();
  };
  const onEnd = () => {
    if (phase !== 'reading') return;
    for (const frame of reader.end()) queue.push(frame);
    enter('draining');
    closeWithin(limits.drainMs);
    pump();
  };

  input.on('data', onData).on('end', onEnd).on('close', onEnd).on('error', onEnd);
  return {
    finished,
    stop(reason) {
      if (enter('stopping')) log.info({ reason }, 'the stdio session is ending');
      closeWithin(Math.min(limits.drainMs, maxStopMs));
      pump();
    },
  };
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
