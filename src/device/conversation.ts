/** Owns the talk with one executor process: one question at a time, each bounded, nothing delivered after its end. */
import type { Clock } from '../clock.ts';
import type { ModelLoad, NodePlacement, ParentMessage, ProviderChoice, RunBatch } from '../executor/protocol.ts';
import type { ExecutorChannel } from './channel.ts';
import type { DeviceLimits } from './limits.ts';
import { RunFailure } from './pool.ts';
import type { RunResult } from './pool.ts';
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
}

/** What a run gave, and the memory that the executor's process has after it. */
export interface RunAnswer extends RunResult {
  /** @unit bytes */
  readonly residentBytes: number;
}

/** One executor process from its launch to its end. */
export interface Conversation {
  /**
   * Loads the models on that provider and no other.
   * @throws Error with the executor's reason, RunFailure where it is gone
   */
  load(models: readonly ModelLoad[], threads: number, provider: ProviderChoice): Promise<LoadAnswer>;
  /** @throws RunFailure; where the device was lost the conversation is over */
  run(batch: RunBatch): Promise<RunAnswer>;
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

interface Question {
  answer(message: unknown): void;
  fail(failure: RunFailure): void;
}

/** A conversation over a freshly launched channel. */
export function openConversation(options: ConversationOptions): Conversation {
  const { channel, clock, limits } = options;
  let open: Question | null = null;
  let goneReason: string | null = null;
  let cancelStopTimer = (): void => undefined;
  let lastRunId = 0;

  function close(reason: string, kind: RunFailure['kind']): void {
    if (goneReason !== null) return;
    goneReason = reason;
    cancelStopTimer();
    channel.kill();
    open?.fail(new RunFailure(kind, reason));
    options.onGone(reason);
  }

  function ask<Reply>(
    message: ParentMessage,
    timeoutMs: number,
    read: (message: unknown) => CheckedReply<Reply>,
  ): Promise<Reply> {
    if (goneReason !== null) return Promise.reject(new RunFailure('executorGone', goneReason));
    if (open !== null) return Promise.reject(new Error('An executor is asked one thing at a time.'));
    return new Promise<Reply>((resolve, reject) => {
      const cancelTimer = clock.after(timeoutMs, () => {
        close(`it gave no answer to "${message.type}" within ${timeoutMs} ms`, 'timedOut');
      });
      const finish = () => {
        cancelTimer();
        open = null;
      };
      open = {
        answer(received) {
          const checked = read(received);
          if (!checked.isValid) {
            close(checked.reason, 'executorGone');
            return;
          }
          finish();
          resolve(checked.reply);
        },
        fail(failure) {
          finish();
          reject(failure);
        },
      };
      channel.send(message);
    });
  }

  channel.onMessage((message) => {
    if (goneReason !== null) return;
    if (open === null) close('it sent a message that nobody asked for', 'executorGone');
    else open.answer(message);
  });
  channel.onExit((reason) => {
    close(reason, 'executorGone');
  });

  return {
    async load(models, threads, provider) {
      const question = { type: 'load', models, threads, provider } as const;
      const reply = await ask<LoadReply>(question, limits.loadTimeoutMs, readLoadReply);
      if (reply.type === 'loadFailed') throw new Error(reply.reason);
      return { executionProvider: reply.executionProvider, loadMs: reply.loadMs, placements: reply.placements };
    },
    async run(batch) {
      const runId = ++lastRunId;
      const reply = await ask<RunReply>({ type: 'run', runId, batch }, limits.runTimeoutMs, (message) =>
        readRunReply(message, runId, batch),
      );
      if (reply.type === 'result') {
        return { rows: reply.rows, computeMs: reply.computeMs, residentBytes: reply.residentBytes };
      }
      if (reply.kind === 'deviceLost') {
        close(`it lost its device: ${reply.reason}`, 'executorGone');
        throw new RunFailure('executorGone', reply.reason);
      }
      throw new RunFailure(reply.kind === 'outOfMemory' ? 'outOfMemory' : 'runFailed', reply.reason);
    },
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
