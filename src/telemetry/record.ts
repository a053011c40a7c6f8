/** Owns what is counted and logged of calls and runs, so that every line and every label is made in one place. */
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { CallStages } from './stages.ts';

/** How a call ended, for metrics and the log. */
export interface EndedCall {
  /** A defined method, or one name for all others. */
  readonly method: string;
  /** `ok` or the name of a catalogue entry. */
  readonly outcome: string;
  readonly transport: string;
  /** @unit ms */
  readonly latencyMs: number;
  /** What was thrown where it is a bug, else null. */
  readonly bug: unknown;
  /** What it spent where, and the name of its request. */
  readonly stages: CallStages;
}

/** A batch that ran. */
export interface EndedRun {
  readonly device: string;
  readonly items: number;
  /** Real tokens, and those that went through the graph. */
  readonly tokens: number;
  readonly paddedTokens: number;
  readonly computeMs: number;
  /** What it should have taken. */
  readonly expectedMs: number;
  /** Longest wait of its items. */
  readonly queueMs: number;
}

/** Outcomes in which the service did not serve a call that was good: the reasons of refusals. */
const refusals: ReadonlySet<string> = new Set(['overloaded', 'deadlineExceeded', 'unavailable', 'tooLarge']);

/** Counts a call that was answered and writes its line. */
export function recordCall(call: EndedCall, metrics: Metrics, log: Log, isDraining: boolean): void {
  const { method, outcome, transport, latencyMs, bug, stages } = call;
  const { requestId, span, modelId: model, inputs, tokens } = stages;
  metrics.calls.inc({ method, outcome, transport });
  metrics.callSeconds.observe({ method }, latencyMs / 1000);
  if (outcome === 'ok' && model !== null) {
    metrics.callInputs.inc({ method, model }, inputs);
    metrics.callTokens.inc({ method, model }, tokens);
  }
  if (refusals.has(outcome)) {
    metrics.refusedCalls.inc({ reason: outcome === 'unavailable' && isDraining ? 'draining' : outcome });
  }
  if (bug === null && !log.isLevelEnabled('debug')) return;
  const named = { requestId, ...(span === null ? {} : { traceId: span.traceId }), method };
  if (bug !== null) log.error({ ...named, err: bug }, 'a call failed because of a bug');
  else log.debug({ ...named, outcome, transport, latencyMs, inputs, tokens }, 'call');
}

/** Counts a batch that ran. */
function recordRun(run: EndedRun, metrics: Metrics): void {
  const { device, items, tokens, paddedTokens, computeMs, expectedMs, queueMs } = run;
  metrics.runs.inc({ device });
  metrics.runInputs.inc({ device }, items);
  metrics.runBatchInputs.observe({ device }, items);
  metrics.runTokens.inc({ device }, tokens);
  metrics.runPaddedTokens.inc({ device }, paddedTokens);
  metrics.runPredictedSeconds.inc({ device }, expectedMs / 1000);
  metrics.runSeconds.inc({ device }, computeMs / 1000);
  metrics.queueWaitSeconds.observe(queueMs / 1000);
}

/** A batch that gave nothing. */
interface LostRun {
  readonly executorId: string;
  readonly kind: string;
  readonly reason: string;
  readonly items: number;
  readonly requestIds: readonly string[];
}

/** A result that was refused. */
interface BadResult {
  readonly executorId: string;
  readonly modelId: string;
  readonly head: string;
  readonly requestIds: readonly string[];
}

/** Counts and logs what happens to batches. */
export function createRunRecorder(metrics: Metrics, log: Log) {
  return {
    onRun(run: EndedRun) {
      recordRun(run, metrics);
    },
    onLostRun(lost: LostRun) {
      metrics.lostRuns.inc({ kind: lost.kind });
      log.warn(lost, 'a batch gave no result');
    },
    onBadResult(bad: BadResult) {
      metrics.nonFiniteResults.inc({ model: bad.modelId, head: bad.head });
      log.error(bad, 'a result held a value that is not a number and was refused');
    },
  };
}

/** Counts and logs what happens to executors; once the process is ending, their end is no warning. */
export function createDeviceRecorder(metrics: Metrics, log: Log, isDraining: () => boolean) {
  return {
    onMoved(executorId: string, from: string, to: string) {
      log.debug({ executorId, from, to }, 'executor state');
    },
    onProved(executorId: string, pid: number | null, loadMs: number, proofMs: number) {
      const times = { loadMs: Math.round(loadMs), proofMs: Math.round(proofMs) };
      log.info({ executorId, pid, ...times }, 'an executor has proved itself');
    },
    onDied(executorId: string, reason: string, restartInMs: number | null) {
      if (restartInMs !== null) metrics.executorRestarts.inc();
      log[isDraining() ? 'info' : 'warn']({ executorId, reason, restartInMs }, 'an executor is gone');
    },
  };
}
