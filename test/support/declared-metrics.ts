/** Owns the metrics of a server that does nothing, for what is said of every metric. */
import { createMetrics, type Metrics } from '../../src/telemetry/metrics.ts';

/** Fresh metrics, all gauges at zero. */
export function createIdleMetrics(): Metrics {
  const metrics = createMetrics();
  const zero = () => 0;
  metrics.watch({
    queuedInputs: zero,
    queuedTokens: zero,
    queueSeconds: zero,
    runningInputs: zero,
    executorsReady: zero,
    resultCacheBytes: zero,
    isReady: () => false,
    executors: () => [],
    deviceMemory: () => Promise.resolve([]),
    residentBytes: zero,
    build: { version: '', node: '', onnxruntime: '' },
  });
  return metrics;
}
