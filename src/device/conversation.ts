/** Owns the talk with one executor process: every question bounded, nothing delivered after its end. */
import type { Clock } from '../clock.ts';
import type {
  HeadTimings,
  ModelHead,
  ModelLoad,
  NodePlacement,
  ParentMessage,
  ProviderChoice,
  RunBatch,
} from '../executor/protocol.ts';
import type { ExecutorChannel } from './channel.ts';
import type { DeviceLimits } from './limits.ts';
import { OpenRuns } from './open-runs.ts';
import type { OpenRun, RunOptions } from './open-runs.ts';
import { RunFailure } from './pool.ts';
import type { RunResult, TakeWish } from './pool.ts';
import { readLoadReply, readRunReply } from './reply.ts';
import type { CheckedReply, LoadReply, RunReply } from './reply.ts';

/** What an executor says once its models are loaded. */
export interface LoadAnswer {
  /** What really took the models. */
  readonly executionProvider: string;
  /** @unit ms */
  readonly loadMs: number;
  /** One for each model. */
  readonly placements: readonly NodePlacement[];
  /** How long runs take, of the heads of which it was asked. */
  readonly timings: readonly HeadTimings[];
}

/** What a run gave, and the memory that the executor's process has after it. */
export interface RunAnswer extends RunResult {
  /** @unit bytes */
  readonly residentBytes: number;
}

/** A run on its way. */
export interface GivenRun {
  readonly answer: Promise<RunAnswer>;
  /** Nobody waits for these items any more: those that have not begun are not run. */
  readonly skip: (positions: readonly number[]) => void;
}

/** A run for which nothing is said: it comes when its turn comes, and nobody knows how long it takes. */
const plainRun: RunOptions = { isUrgent: false, expectedMs: 0 };

/** One executor process from its launch to its end. */
export interface Conversation {
  /**
   * Loads the models on that provider and no other, and times every head that is not among `timedHeads`.
   * @throws Error with the executor's reason, RunFailure where it is gone
   */
  load(
    models: readonly ModelLoad[],
    threads: number,
    provider: ProviderChoice,
    timedHeads: readonly ModelHead[],
  ): Promise<LoadAnswer>;
  /**
   * Gives the executor a run, also while another one runs.
   * @throws RunFailure, as the answer; where the device was lost or its memory did not suffice the conversation is over
   */
  run(batch: RunBatch, options?: RunOptions): GivenRun;
  /** Whether a run may be given while another one runs. */
  hasRoom(wish: TakeWish): boolean;
  /** Time until a run that is given now would begin. @unit ms */
  backlogMs(isUrgent: boolean): number;
  /** Asks the executor to end after what it is doing; it is killed where that takes longer than the bound. */
  stop(): void;
  /** Kills the executor; the open question fails, then `onGone` is called, both at most once. */
  end(reason: string): void;
}

/** What a conversation is held with. */
export interface ConversationOptions {
  readonly channel: ExecutorChannel;
  readonly clock: Clock;
  readonly limits: DeviceLimits;
  /** Called once, when the executor is gone and the open question has been failed. */
  readonly onGone: (reason: string) => void;
}

interface Question<Reply> {
  answer(reply: Reply): void;
  fail(failure: RunFailure): void;
}

interface AskedRun extends OpenRun, Question<RunReply> {
  readonly skipped: Set<number>;
}

/** A conversation over a freshly launched channel. */
export function openConversation(options: ConversationOptions): Conversation {
  const { channel, clock, limits } = options;
  const runs = new OpenRuns<AskedRun>();
  let load: Question<LoadReply> | null = null;
  let goneReason: string | null = null;
  let cancelStopTimer = (): void => undefined;
  let cancelAnswerTimer = (): void => undefined;
  let lastRunId = 0;

  function close(reason: string, kind: RunFailure['kind'], blamedRunId = runs.startedId): void {
    if (goneReason !== null) return;
    goneReason = reason;
    cancelStopTimer();
    cancelAnswerTimer();
    channel.kill();
    load?.fail(new RunFailure(kind, reason));
    for (const run of runs.all) run.fail(new RunFailure(run.runId === blamedRunId ? kind : 'notStarted', reason));
    options.onGone(reason);
  }

  /** Bounds the one answer that is due next: what waits behind it has its own time once its turn has come. */
  function expectAnswer(type: ParentMessage['type'], timeoutMs: number): void {
    cancelAnswerTimer();
    cancelAnswerTimer = clock.after(timeoutMs, () => {
      close(`it gave no answer to "${type}" within ${timeoutMs} ms`, 'timedOut');
    });
  }

  /** The reply, where it is one; garbage ends the conversation. */
  function valid<Reply>(checked: CheckedReply<Reply>): Reply | null {
    if (checked.isValid) return checked.reply;
    close(checked.reason, 'executorGone');
    return null;
  }

  function answerRun(message: unknown): void {
    const reply = valid(readRunReply(message, runs));
    if (reply === null) return;
    const end = endBy(reply);
    if (end !== null) {
      close(end.reason, end.kind, reply.runId);
      return;
    }
    const run = runs.find(reply.runId);
    runs.finish(reply.runId, reply.nextRunId, clock.nowMs());
    cancelAnswerTimer();
    if (!runs.isEmpty) expectAnswer('run', limits.runTimeoutMs);
    run?.answer(reply);
  }

  function answerLoad(message: unknown): void {
    const reply = valid(readLoadReply(message));
    if (reply === null) return;
    cancelAnswerTimer();
    load?.answer(reply);
  }

  channel.onMessage((message) => {
    if (goneReason !== null) return;
    if (load !== null) answerLoad(message);
    else if (!runs.isEmpty) answerRun(message);
    else close('it sent a message that nobody asked for', 'executorGone');
  });
  channel.onExit((reason) => {
    close(reason, 'executorGone');
  });

  function askLoad(message: ParentMessage): Promise<LoadReply> {
    if (goneReason !== null) return Promise.reject(new RunFailure('executorGone', goneReason));
    return new Promise<LoadReply>((answer, fail) => {
      load = { answer, fail };
      expectAnswer('load', limits.loadTimeoutMs);
      channel.send(message);
    }).finally(() => {
      load = null;
    });
  }

  function askRun(batch: RunBatch, wish: RunOptions, runId: number, skipped: Set<number>): Promise<RunReply> {
    if (goneReason !== null) return Promise.reject(new RunFailure('notStarted', goneReason));
    return new Promise((answer, fail) => {
      if (runs.isEmpty) expectAnswer('run', limits.runTimeoutMs);
      runs.add({ ...wish, runId, batch, skipped, answer, fail }, clock.nowMs());
      channel.send({ type: 'run', runId, isUrgent: wish.isUrgent, batch });
    });
  }

  function answerOf(reply: RunReply): RunAnswer {
    if (reply.type === 'result') return reply;
    throw new RunFailure('runFailed', reply.reason);
  }

  return {
    async load(models, threads, provider, timedHeads) {
      const question = { type: 'load', models, threads, provider, timedHeads } as const;
      const reply = await askLoad(question);
      if (reply.type === 'loadFailed') throw new Error(reply.reason);
      const { executionProvider, loadMs, placements, timings } = reply;
      return { executionProvider, loadMs, placements, timings };
    },
    run(batch, wish = plainRun) {
      const runId = ++lastRunId;
      const skipped = new Set<number>();
      return {
        answer: askRun(batch, wish, runId, skipped).then(answerOf),
        skip(positions) {
          if (runs.find(runId) === undefined) return;
          for (const position of positions) skipped.add(position);
          channel.send({ type: 'skip', runId, positions });
        },
      };
    },
    hasRoom: (wish) => runs.hasRoom(wish),
    backlogMs: (isUrgent) => runs.backlogMs(clock.nowMs(), isUrgent),
    stop() {
      if (goneReason !== null) return;
      cancelStopTimer();
      cancelStopTimer = clock.after(limits.stopTimeoutMs, () => {
        close(`it did not stop within ${limits.stopTimeoutMs} ms`, 'executorGone');
      });
      channel.send({ type: 'stop' });
    },
    end(reason) {
      close(reason, 'executorGone');
    },
  };
}

/** Why an executor cannot go on after its answer to a run; null where it can. */
function endBy(reply: RunReply): { readonly reason: string; readonly kind: RunFailure['kind'] } | null {
  if (reply.type === 'result' || reply.kind === 'failed') return null;
  if (reply.kind === 'deviceLost') return { reason: `it lost its device: ${reply.reason}`, kind: 'executorGone' };
  // What could not be allocated once may have left the engine's memory in any state.
  return { reason: `it ran out of memory: ${reply.reason}`, kind: 'outOfMemory' };
}
