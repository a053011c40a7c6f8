/** Owns scripted executors for tests: channels without a process, on which every fault can be played. */
import type { ExecutorChannel, LaunchExecutor } from '../../src/device/channel.ts';
import { createRunQueue } from '../../src/executor/run-queue.ts';
import type { QueuedRun } from '../../src/executor/run-queue.ts';
import type {
  ExecutorMessage,
  HeadTimings,
  NodePlacement,
  ParentMessage,
  RunBatch,
  RunFailureCause,
  RunItem,
  RunRow,
} from '../../src/executor/protocol.ts';

/** What a scripted executor does with a question: rows or `ok` answer it, the others are faults. */
export type FakeRunReply =
  | readonly RunRow[]
  | 'hang'
  | 'exit'
  | { readonly failed: string; readonly kind?: RunFailureCause }
  /** Sent as it is, whatever it is. */
  | { readonly raw: unknown };
export type FakeLoadReply = 'ok' | 'hang' | 'exit' | { readonly failed: string };

/** The script; what it leaves out works at once. `launch` counts launches from 0. */
export interface FakeScript {
  load?(launch: number): FakeLoadReply;
  run?(batch: RunBatch, launch: number): FakeRunReply | Promise<FakeRunReply>;
  /** False: ignores `stop`. */
  stops?: boolean;
  /** What it says it runs on; `cpu` where left out. */
  executionProvider?: string;
  /** What it says runs where; nothing where left out. */
  placements?: readonly NodePlacement[];
  /** How long it says its runs take; nothing where left out. */
  timings?: readonly HeadTimings[];
  /** How long it says the engine took for a run; 1 where left out. @unit ms */
  computeMs?: number | ((batch: RunBatch) => number);
  /** The memory it says it has after a run. @unit bytes */
  residentBytes?: number | ((batch: RunBatch) => number);
}

/** One launched executor, with the strings to pull. */
export interface FakeChannel extends ExecutorChannel {
  readonly executorId: string;
  readonly received: readonly ParentMessage[];
  isKilled(): boolean;
  /** Sends a message of its own, also after its end, as a process that was slow to die would. */
  emit(message: unknown): void;
  exit(reason: string): void;
}

/** A launcher and everything that it launched, in order. */
export interface FakeExecutors {
  readonly launch: LaunchExecutor;
  readonly channels: readonly FakeChannel[];
  /** Every batch that an executor ran, in the order in which they began. */
  readonly batches: readonly RunBatch[];
}

/** Executors that follow `script`. */
export function createFakeExecutors(script: FakeScript = {}): FakeExecutors {
  const channels: FakeChannel[] = [];
  const batches: RunBatch[] = [];
  const launch = (executorId: string) => {
    const channel = createChannel(executorId, channels.length, script, batches);
    channels.push(channel);
    return channel;
  };
  return { launch, channels, batches };
}

/** Rows that depend on the ids of each text only; dense vectors and rows have two values. */
export function fakeRows(batch: RunBatch): RunRow[] {
  return batch.items.map((item) => fakeRow(batch, item));
}

function fakeRow(batch: RunBatch, { ids, keptRows }: RunItem): RunRow {
  const sum = ids.reduce((total, id) => total + id, 0);
  switch (batch.head) {
    case 'dense':
      return { values: Float32Array.of(sum, ids.length), indices: null };
    case 'sparse': {
      const indices = Int32Array.from(new Set(ids)).sort();
      return { values: new Float32Array(indices.length).fill(ids.length), indices };
    }
    case 'rows':
    case 'hidden': {
      const kept = keptRows === null ? [...ids.keys()] : [...keptRows];
      return { values: Float32Array.from(kept.flatMap((row) => [ids[row] ?? 0, row])), indices: null };
    }
    case 'logit':
    case 'maxSim':
      return { values: Float32Array.of(sum), indices: null };
  }
}

const valueFor = (batch: RunBatch, value: number | ((batch: RunBatch) => number) = 1): number =>
  typeof value === 'number' ? value : value(batch);

function createChannel(executorId: string, launch: number, script: FakeScript, batches: RunBatch[]): FakeChannel {
  const received: ParentMessage[] = [];
  let onMessage = (_message: ExecutorMessage): void => undefined;
  let onExit = (_reason: string): void => undefined;
  const queue = createRunQueue();
  let isRunning = false;
  let isStopping = false;
  let isGone = false;
  let isKilled = false;

  const emit = (message: unknown) => {
    queueMicrotask(() => {
      onMessage(message as ExecutorMessage);
    });
  };
  const exit = (reason: string) => {
    if (isGone) return;
    isGone = true;
    queueMicrotask(() => {
      onExit(reason);
    });
  };
  const load = () => {
    const reply = script.load?.(launch) ?? 'ok';
    if (reply === 'exit') exit('its process ended with exit code 1');
    else if (reply === 'ok') {
      const executionProvider = script.executionProvider ?? 'cpu';
      emit({
        type: 'loaded',
        executionProvider,
        loadMs: 1,
        placements: script.placements ?? [],
        timings: script.timings ?? [],
      });
    } else if (reply !== 'hang') emit({ type: 'loadFailed', reason: reply.failed });
  };
  /** Tells the outcome of a run and which one is next, and begins that. */
  const goOn = (outcome: object) => {
    const next = queue.takeNext();
    emit({ ...outcome, nextRunId: next?.question.runId ?? null });
    isRunning = next !== null;
    if (next !== null) void run(next);
    else if (isStopping) exit('its process ended with exit code 0');
  };
  const run = async ({ question: { runId, batch }, skipped: skippedSoFar }: QueuedRun) => {
    const skipped = new Set(skippedSoFar);
    const left = batch.items.filter((_, position) => !skipped.has(position));
    if (left.length > 0) batches.push(batch);
    const scripted = left.length === 0 ? undefined : script.run?.(batch, launch);
    const reply = scripted === undefined ? fakeRows(batch) : await scripted;
    if (isGone || reply === 'hang') return;
    if (reply === 'exit') exit('its process ended with exit code 1');
    else if ('failed' in reply) {
      const failure = { type: 'runFailed', runId, reason: reply.failed, kind: reply.kind ?? 'failed' };
      if (failure.kind === 'deviceLost') emit({ ...failure, nextRunId: null });
      else goOn(failure);
    } else if ('raw' in reply) emit(reply.raw);
    else {
      goOn({
        type: 'result',
        runId,
        rows: reply.map((row, position) => (skipped.has(position) ? null : row)),
        computeMs: left.length === 0 ? 0 : valueFor(batch, script.computeMs),
        paddedTokens: left.reduce((sum, { ids }) => sum + ids.length, 0),
        residentBytes: valueFor(batch, script.residentBytes),
      });
    }
  };
  const begin = () => {
    if (isRunning) return;
    const first = queue.takeNext();
    isRunning = first !== null;
    if (first !== null) void run(first);
  };

  return {
    executorId,
    pid: null,
    received,
    isKilled: () => isKilled,
    emit,
    exit,
    send(message) {
      if (isGone) return;
      received.push(message);
      switch (message.type) {
        case 'load':
          load();
          return;
        case 'run':
          queue.add(message);
          begin();
          return;
        case 'skip':
          queue.skip(message.runId, message.positions);
          return;
        case 'stop':
          isStopping = script.stops ?? true;
          if (isStopping && !isRunning) exit('its process ended with exit code 0');
      }
    },
    onMessage(listener) {
      onMessage = listener;
    },
    onExit(listener) {
      onExit = listener;
    },
    kill() {
      isKilled = true;
      exit('its process was ended by SIGKILL');
    },
  };
}
