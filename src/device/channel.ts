/** Owns the contract of a channel to one executor, and the real one: a forked process. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { ExecutorMessage, ParentMessage } from '../executor/protocol.ts';

/** One executor as the supervisor sees it. Events come asynchronously, never from inside a call. */
export interface ExecutorChannel {
  /** Process id, for the log and for tests that kill it; null where there is no process. */
  readonly pid: number | null;
  /** Hands a message over; silently dropped once the executor is gone (`onExit` says so). */
  send(message: ParentMessage): void;
  onMessage(listener: (message: ExecutorMessage) => void): void;
  /** Called once, when the executor is gone for whatever reason. */
  onExit(listener: (reason: string) => void): void;
  /** Ends the executor now, even in the middle of a run or stopped by a signal. */
  kill(): void;
}

/** Starts one executor. */
export type LaunchExecutor = (executorId: string) => ExecutorChannel;

/**
 * Lets the native heap of an executor keep what one run gives back for the next: few arenas, large steps, huge pages.
 * Every run allocates and frees tens of megabytes of activations. Where the heap is trimmed after each, a run of 170
 * tokens has thousands of page faults: 400 texts took 101 ms of CPU for 1,000 tokens with a trim threshold of 128 KiB
 * and a mmap threshold of 4 MiB (600,000 faults), 88 ms with these (13,000 faults), at the same resident memory.
 * What is free beyond 24 MiB goes back; with 64 MiB the speed was the same, and an executor had 30 MB more.
 * What is larger than 32 MiB, such as the logits of a sparse model, is a mapping of its own, and goes back at once.
 */
export const allocatorEnvironment = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_TRIM_THRESHOLD_: '25165824',
  MALLOC_MMAP_THRESHOLD_: '33554432',
  MALLOC_TOP_PAD_: '4194304',
  GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
};

/**
 * A launcher of executor processes.
 * @param entryPath the compiled entry file of the executor
 * @param environment everything that an executor sees of the environment besides the allocator's settings;
 *   what is not named here, keys and tokens above all, never reaches it
 */
export function forkExecutor(entryPath: string, environment: Readonly<Record<string, string>> = {}): LaunchExecutor {
  return () => {
    const child = fork(entryPath, [String(process.pid)], {
      serialization: 'advanced',
      // Nothing may reach this process's stdout, which can be a protocol stream.
      stdio: ['ignore', 2, 2, 'ipc'],
      // What a run leaves in the heap of JavaScript is a few kilobytes: it needs no room for the young to grow old in.
      execArgv: ['--max-semi-space-size=1'],
      env: { ...environment, ...allocatorEnvironment },
    });
    return channelOf(child);
  };
}

function channelOf(child: ChildProcess): ExecutorChannel {
  return {
    pid: child.pid ?? null,
    send(message) {
      if (child.connected) child.send(message, () => undefined);
    },
    onMessage(listener) {
      child.on('message', listener as (message: unknown) => void);
    },
    onExit(listener) {
      // Not `exit`: a result that was written before the end is still delivered before `close`.
      child.once('close', (code: number | null, signal: string | null) => {
        listener(signal === null ? `its process ended with exit code ${code}` : `its process was ended by ${signal}`);
      });
      child.on('error', (error) => {
        if (child.pid === undefined) listener(`its process could not be started: ${error.message}`);
      });
    },
    kill() {
      child.kill('SIGKILL');
    },
  };
}
