/** Owns every metric: each is declared once, in base units, with bounded labels. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** One executor as gauges show it. */
export interface ExecutorFacts {
  readonly deviceId: string;
  readonly executorId: string;
  readonly state: (typeof executorStates)[number];
  /** null: it has said nothing. @unit bytes */
  readonly residentBytes: number | null;
}

/** Memory of one device as gauges show it. */
export interface DeviceMemoryFacts {
  readonly deviceId: string;
  /** Taken by every process on the machine. @unit bytes */
  readonly usedBytes: number;
  /** @unit bytes */
  readonly totalBytes: number;
}

/** Every state of an executor, so that those that none is in are shown as 0. */
const executorStates = ['starting', 'warming', 'ready', 'busy', 'draining', 'dead'] as const;

/** Live values that gauges read when they are scraped. */
export interface GaugeSources {
  readonly queuedInputs: () => number;
  readonly queuedTokens: () => number;
  readonly queueSeconds: () => number;
  readonly runningInputs: () => number;
  readonly executorsReady: () => number;
  readonly resultCacheBytes: () => number;
  readonly isReady: () => boolean;
  readonly executors: () => readonly ExecutorFacts[];
  /** Of the devices that tell it. */
  readonly deviceMemory: () => Promise<readonly DeviceMemoryFacts[]>;
  /** Memory of this process. @unit bytes */
  readonly residentBytes: () => number;
  /** What runs, by version. */
  readonly build: { readonly version: string; readonly node: string; readonly onnxruntime: string };
}

/** Buckets that cover a ping and a call at its deadline. @unit s */
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25];
/** Buckets from a run of one text to the largest that a setting allows. */
const batchBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096];

/** The metrics of one server. */
export interface Metrics {
  readonly registry: Registry;
  readonly calls: Counter<'method' | 'outcome' | 'transport'>;
  readonly callSeconds: Histogram<'method'>;
  readonly callInputs: Counter<'method' | 'model'>;
  readonly callTokens: Counter<'method' | 'model'>;
  readonly refusedRequests: Counter<'reason'>;
  readonly refusedCalls: Counter<'reason'>;
  readonly keyRefusals: Counter<'key' | 'reason'>;
  readonly runs: Counter<'device'>;
  readonly runInputs: Counter<'device'>;
  readonly runBatchInputs: Histogram<'device'>;
  readonly runTokens: Counter<'device'>;
  readonly runPaddedTokens: Counter<'device'>;
  readonly runSeconds: Counter<'device'>;
  readonly runPredictedSeconds: Counter<'device'>;
  readonly queueWaitSeconds: Histogram;
  readonly lostRuns: Counter<'kind'>;
  readonly nonFiniteResults: Counter<'model' | 'head'>;
  readonly executorRestarts: Counter;
  readonly resultCacheHits: Counter;
  readonly resultCacheMisses: Counter;
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
    calls: counter(
      'trivec_calls_total',
      'Calls answered, by method, outcome and transport; those of other services by what they run, tokenize or decode',
      ['method', 'outcome', 'transport'],
    ),
    callSeconds: new Histogram({
      name: 'trivec_call_seconds',
      help: 'Time from a call being read to its answer being built, by method',
      labelNames: ['method'],
      buckets: latencyBuckets,
      registers,
    }),
    callInputs: counter('trivec_call_inputs_total', 'Texts and pairs of answered calls, by method and model', [
      'method',
      'model',
    ]),
    callTokens: counter(
      'trivec_call_tokens_total',
      'Tokens of answered calls after truncation, run or known, by method and model',
      ['method', 'model'],
    ),
    refusedRequests: counter(
      'trivec_refused_requests_total',
      'HTTP requests refused before any call was read, by reason',
      ['reason'],
    ),
    refusedCalls: counter('trivec_refused_calls_total', 'Calls that were read and not served, by reason', ['reason']),
    keyRefusals: counter(
      'trivec_key_refusals_total',
      'Calls refused because of the limits of their key, by its name in the file of keys and reason',
      ['key', 'reason'],
    ),
    runs: counter('trivec_runs_total', 'Batches run, by device', ['device']),
    runInputs: counter('trivec_run_inputs_total', 'Texts and pairs run, by device', ['device']),
    runBatchInputs: new Histogram({
      name: 'trivec_run_batch_inputs',
      help: 'Texts and pairs of one batch, by device',
      labelNames: ['device'],
      buckets: batchBuckets,
      registers,
    }),
    runTokens: counter('trivec_run_tokens_total', 'Real tokens run, by device', ['device']),
    runPaddedTokens: counter(
      'trivec_run_padded_tokens_total',
      'Tokens that went through the graph with padding and copies, by device',
      ['device'],
    ),
    runPredictedSeconds: counter(
      'trivec_run_predicted_seconds_total',
      'Time that the runs should have taken by the fitted cost, by device',
      ['device'],
    ),
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
    resultCacheHits: counter('trivec_result_cache_hits_total', 'Texts and pairs answered from the result cache'),
    resultCacheMisses: counter(
      'trivec_result_cache_misses_total',
      'Texts and pairs that the result cache did not have',
    ),
    watch(sources) {
      gauge('trivec_queued_inputs', 'Texts and pairs that wait for a device', sources.queuedInputs);
      gauge('trivec_queued_tokens', 'Tokens that wait for a device', sources.queuedTokens);
      gauge('trivec_queue_seconds', 'Predicted time until all that waits has run', sources.queueSeconds);
      gauge('trivec_running_inputs', 'Texts and pairs on a device now', sources.runningInputs);
      gauge('trivec_executors_ready', 'Executors that have proved themselves and are alive', sources.executorsReady);
      gauge('trivec_result_cache_bytes', 'Memory that the result cache takes', sources.resultCacheBytes);
      gauge('trivec_ready', '1 while /health/ready answers 200', () => Number(sources.isReady()));
      gauge('trivec_server_resident_bytes', 'Memory of the server without its executors', sources.residentBytes);
      new Gauge({
        name: 'trivec_executors',
        help: 'Executors, by device and state',
        labelNames: ['device', 'state'],
        registers,
        collect() {
          const executors = sources.executors();
          for (const device of new Set(executors.map(({ deviceId }) => deviceId))) {
            for (const state of executorStates) {
              const isThere = (facts: ExecutorFacts) => facts.deviceId === device && facts.state === state;
              this.set({ device, state }, executors.filter(isThere).length);
            }
          }
        },
      });
      new Gauge({
        name: 'trivec_executor_resident_bytes',
        help: 'Memory of the process of an executor as it said last, by device and executor',
        labelNames: ['device', 'executor'],
        registers,
        collect() {
          this.reset();
          for (const { deviceId: device, executorId: executor, residentBytes } of sources.executors()) {
            if (residentBytes !== null) this.set({ device, executor }, residentBytes);
          }
        },
      });
      const memoryGauge = (name: string, help: string, bytesOf: (facts: DeviceMemoryFacts) => number) =>
        new Gauge({
          name,
          help,
          labelNames: ['device'],
          registers,
          async collect() {
            const devices = await sources.deviceMemory();
            this.reset();
            for (const facts of devices) this.set({ device: facts.deviceId }, bytesOf(facts));
          },
        });
      memoryGauge(
        'trivec_device_memory_used_bytes',
        'Memory of a GPU that is taken, by whatever process, by device; of NVIDIA GPUs only',
        ({ usedBytes }) => usedBytes,
      );
      memoryGauge(
        'trivec_device_memory_bytes',
        'Memory of a GPU, by device; of NVIDIA GPUs only',
        ({ totalBytes }) => totalBytes,
      );
      const buildInfo = new Gauge({
        name: 'trivec_build_info',
        help: '1, with the versions of the server, of Node and of onnxruntime as labels',
        labelNames: ['version', 'node', 'onnxruntime'],
        registers,
      });
      buildInfo.set(sources.build, 1);
    },
  };
}
