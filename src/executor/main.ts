/** Owns the executor process: one thing at a time, each run answered by exactly one message. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { failureCauseOf, messageOf } from './engine-failure.ts';
import { createMemoryReader } from './own-memory.ts';
import { watchParent } from './parent-watch.ts';
import { placeModels } from './placement.ts';
import { runLimitsOf } from './plan.ts';
import type { ExecutorMessage, ParentMessage } from './protocol.ts';
import { createRunQueue } from './run-queue.ts';
import type { QueuedRun } from './run-queue.ts';
import { createRunner } from './run.ts';
import type { RunBatchNow } from './run.ts';
import { providerProblem } from './session-options.ts';
import { loadModels, releaseModels } from './session.ts';
import type { LoadedModels } from './session.ts';
import { cpuTimingBudgetMs, timeHeads } from './timing.ts';
import { warmUp } from './warm-up.ts';

let models: LoadedModels = new Map();
let runBatch: RunBatchNow = createRunner(models);
const queue = createRunQueue();
const residentBytes = createMemoryReader();
/** The run that runs, or is the next one to: it is settled with the answer to the one before, or as soon as it comes. */
let active: QueuedRun | null = null;

type LoadQuestion = Extract<ParentMessage, { type: 'load' }>;

async function handle(message: Extract<ParentMessage, { type: 'load' | 'stop' }>): Promise<void> {
  if (message.type === 'load') return send(await load(message));
  await releaseModels(models);
  process.exit(0);
}

async function runActive(): Promise<void> {
  if (active === null) return;
  const outcome = await run(active);
  // What was sent meanwhile is heard before the next run is chosen: an urgent one, or that nobody waits any more.
  await nextTurn();
  active = queue.takeNext();
  await send({ ...outcome, nextRunId: active?.question.runId ?? null });
  if (outcome.type === 'runFailed' && outcome.kind === 'deviceLost') endWithoutDevice();
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
    const isCpu = question.provider.name === 'cpu';
    const budgetMs = isCpu ? cpuTimingBudgetMs : await warmUp(question.models, limits, runBatch);
    const timings = await timeHeads({ ...question, limits, budgetMs }, runBatch);
    return { type: 'loaded', executionProvider, loadMs: performance.now() - startMs, placements, timings };
  } catch (error) {
    return { type: 'loadFailed', reason: messageOf(error) };
  }
}

type RunOutcome = WithoutNext<Extract<ExecutorMessage, { type: 'result' | 'runFailed' }>>;
type WithoutNext<Message> = Message extends unknown ? Omit<Message, 'nextRunId'> : never;

async function run({ question: { runId, batch }, skipped }: QueuedRun): Promise<RunOutcome> {
  try {
    return { type: 'result', runId, ...(await runBatch(batch, skipped)), residentBytes: residentBytes() };
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
  switch (message.type) {
    case 'skip':
      queue.skip(message.runId, message.positions);
      return;
    case 'run':
      queue.add(message);
      active ??= queue.takeNext();
      handled = handled.then(runActive);
      return;
    default:
      handled = handled.then(() => handle(message));
  }
});
