/** Owns every metric: each is declared once, in base units, with bounded labels. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** Live values that gauges read when they are scraped. */
export interface GaugeSources {
  readonly queuedInputs: () => number;
  readonly queuedTokens: () => number;
  readonly queueSeconds: () => number;
  readonly runningInputs: () => number;
  readonly executorsReady: () => number;
  readonly isReady: () => boolean;
}

/** Buckets that cover a ping and a call at its deadline. @unit s */
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25];

/** The metrics of one server. */
export interface Metrics {
  readonly registry: Registry;
  readonly calls: Counter<'method' | 'outcome' | 'transport'>;
  readonly callSeconds: Histogram<'method'>;
  readonly refusedRequests: Counter<'reason'>;
  readonly runs: Counter<'device'>;
  readonly runInputs: Counter<'device'>;
  readonly runTokens: Counter<'device'>;
  readonly runSeconds: Counter<'device'>;
  readonly queueWaitSeconds: Histogram;
  readonly lostRuns: Counter<'kind'>;
  readonly nonFiniteResults: Counter<'model' | 'head'>;
  readonly executorRestarts: Counter;
  /** Connects the gauges to what they show. */
  watch(sources: GaugeSources): void;
}

/** Fresh metrics with a registry of their own. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  return {
    registry,
    calls: counter('trivec_calls_total', 'RCP calls answered, by method, outcome and transport', [
      'method',
      'outcome',
      'transport',
    ]),
    callSeconds: new Histogram({
      name: 'trivec_call_seconds',
      help: 'Time from a call being read to its answer being built, by method',
      labelNames: ['method'],
      buckets: latencyBuckets,
      registers,
    }),
    refusedRequests: counter(
      'trivec_refused_requests_total',
      'HTTP requests refused before any call was read, by reason',
      ['reason'],
    ),
    runs: counter('trivec_runs_total', 'Batches run, by device', ['device']),
    runInputs: counter('trivec_run_inputs_total', 'Texts and pairs run, by device', ['device']),
    runTokens: counter('trivec_run_tokens_total', 'Real tokens run, by device', ['device']),
    runSeconds: counter('trivec_run_seconds_total', 'Time spent in the engine, by device', ['device']),
    queueWaitSeconds: new Histogram({
      name: 'trivec_queue_wait_seconds',
      help: 'Longest wait of an input of a batch before the batch ran',
      buckets: latencyBuckets,
      registers,
    }),
    lostRuns: counter('trivec_lost_runs_total', 'Batches that gave no result, by kind of failure', ['kind']),
    nonFiniteResults: counter('trivec_non_finite_results_total', 'Results refused because a value was not a number', [
      'model',
      'head',
    ]),
    executorRestarts: counter('trivec_executor_restarts_total', 'Executors started again after they were lost'),
    watch(sources) {
      gauge('trivec_queued_inputs', 'Texts and pairs that wait for a device', sources.queuedInputs);
      gauge('trivec_queued_tokens', 'Tokens that wait for a device', sources.queuedTokens);
      gauge('trivec_queue_seconds', 'Predicted time until all that waits has run', sources.queueSeconds);
      gauge('trivec_running_inputs', 'Texts and pairs on a device now', sources.runningInputs);
      gauge('trivec_executors_ready', 'Executors that have proved themselves and are alive', sources.executorsReady);
      gauge('trivec_ready', '1 while /health/ready answers 200', () => Number(sources.isReady()));
    },
  };
}
