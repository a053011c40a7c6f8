/** Owns the executor process: one message at a time, in the order they came, each run answered by exactly one message. */
import { watchParent } from './parent-watch.ts';
import type { ExecutorMessage, ParentMessage } from './protocol.ts';
import { createRunner } from './run.ts';
import type { RunBatchNow } from './run.ts';
import { executionProvider, loadModels, messageOf, releaseModels } from './session.ts';
import type { LoadedModels } from './session.ts';

let models: LoadedModels = new Map();
let runBatch: RunBatchNow = createRunner(models);

async function handle(message: ParentMessage): Promise<void> {
  switch (message.type) {
    case 'load':
      return send(await load(message));
    case 'run':
      return send(await run(message));
    case 'stop':
      await releaseModels(models);
      process.exit(0);
  }
}

async function load(message: Extract<ParentMessage, { type: 'load' }>): Promise<ExecutorMessage> {
  const startMs = performance.now();
  try {
    models = await loadModels(message.models, message.threads);
    runBatch = createRunner(models);
    return { type: 'loaded', executionProvider, loadMs: performance.now() - startMs };
  } catch (error) {
    return { type: 'loadFailed', reason: messageOf(error) };
  }
}

async function run(message: Extract<ParentMessage, { type: 'run' }>): Promise<ExecutorMessage> {
  try {
    return { type: 'result', runId: message.runId, ...(await runBatch(message.batch)) };
  } catch (error) {
    return { type: 'runFailed', runId: message.runId, reason: messageOf(error) };
  }
}

/** Resolves once the message is written: a `stop` behind it must not cut it off. */
function send(message: ExecutorMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, undefined, () => {
      resolve();
    });
  });
}

// Both reach the whole process group or control group; the parent drains first and ends its executors itself.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);

// Nothing is run before the watch is on: from the first load on the main thread may be blocked for long.
let handled = watchParent(Number(process.argv[2]));
process.on('message', (message: ParentMessage) => {
  handled = handled.then(() => handle(message));
});
