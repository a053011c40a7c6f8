/** Owns the promise that no executor outlives the process that started it, whatever its main thread is doing. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/**
 * How often the parent is looked for.
 * @unit ms
 */
const pollIntervalMs = 500;

/** Small: the thread does nothing but compare two numbers. */
const watchHeapMegabytes = 8;

interface WatchData {
  readonly watchedParentPid: number;
}

/**
 * Ends this process by SIGKILL as soon as `parentPid` is no longer its parent; resolves once that is guarded.
 * A thread of its own looks, because a run blocks the main thread for as long as it takes.
 */
export function watchParent(parentPid: number): Promise<void> {
  const data: WatchData = { watchedParentPid: parentPid };
  const thread = new Worker(new URL(import.meta.url), {
    workerData: data,
    execArgv: [],
    // Else Node opens this process's own two for it and makes them non-blocking: what the engine logs would be cut off.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: watchHeapMegabytes, maxYoungGenerationSizeMb: 1 },
  });
  thread.on('error', endThisProcess);
  process.on('disconnect', endThisProcess);
  return new Promise((resolve) => {
    thread.once('message', () => {
      thread.unref();
      resolve();
    });
  });
}

function endThisProcess(): void {
  process.kill(process.pid, 'SIGKILL');
}

function isWatchData(data: unknown): data is WatchData {
  return typeof data === 'object' && data !== null && 'watchedParentPid' in data;
}

if (!isMainThread && isWatchData(workerData)) {
  const { watchedParentPid } = workerData;
  setInterval(() => {
    if (process.ppid !== watchedParentPid) endThisProcess();
  }, pollIntervalMs);
  parentPort?.postMessage('watching');
}
