/** Owns the executor process: one message at a time, in the order they came, each run answered by exactly one message. */
import { failureCauseOf, messageOf } from './engine-failure.ts';
import { watchParent } from './parent-watch.ts';
import { placeModels } from './placement.ts';
import { runLimitsOf } from './plan.ts';
import type { ExecutorMessage, ParentMessage } from './protocol.ts';
import { createRunner } from './run.ts';
import type { RunBatchNow } from './run.ts';
import { providerProblem } from './session-options.ts';
import { loadModels, releaseModels } from './session.ts';
import type { LoadedModels } from './session.ts';
import { warmUp } from './warm-up.ts';

let models: LoadedModels = new Map();
let runBatch: RunBatchNow = createRunner(models);

type LoadQuestion = Extract<ParentMessage, { type: 'load' }>;

async function handle(message: ParentMessage): Promise<void> {
  switch (message.type) {
    case 'load':
      return send(await load(message));
    case 'run': {
      const reply = await run(message);
      await send(reply);
      if (reply.type === 'runFailed' && reply.kind === 'deviceLost') endWithoutDevice();
      return;
    }
    case 'stop':
      await releaseModels(models);
      process.exit(0);
  }
}

async function load(question: LoadQuestion): Promise<ExecutorMessage> {
  const startMs = performance.now();
  const refusal = providerProblem(question.models, question.provider);
  if (refusal !== null) return { type: 'loadFailed', reason: refusal };
  try {
    const { executionProvider, placements, cpuNodes } = await placeModels(question);
    const limits = runLimitsOf(question.provider.name);
    models = await loadModels(question.models, question.threads, question.provider, cpuNodes);
    runBatch = createRunner(models, limits);
    if (question.provider.name !== 'cpu') await warmUp(question.models, limits, runBatch);
    return { type: 'loaded', executionProvider, loadMs: performance.now() - startMs, placements };
  } catch (error) {
    return { type: 'loadFailed', reason: messageOf(error) };
  }
}

async function run(message: Extract<ParentMessage, { type: 'run' }>): Promise<ExecutorMessage> {
  const { runId, batch } = message;
  try {
    return { type: 'result', runId, ...(await runBatch(batch)), residentBytes: process.memoryUsage.rss() };
  } catch (error) {
    return { type: 'runFailed', runId, reason: messageOf(error), kind: failureCauseOf(error) };
  }
}

/** By a signal, because a driver that lost its device may hang in whatever an orderly end would call. */
function endWithoutDevice(): void {
  process.kill(process.pid, 'SIGKILL');
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
