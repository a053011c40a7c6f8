/** Owns what the live panel shows: figures made of two looks at the metrics. */
import { sumOf, type Sample, type Samples } from './prometheus.ts';

/** One look at the metrics. */
export interface Look {
  readonly samples: Samples;
  /** @unit ms */
  readonly atMs: number;
}

/** What a server did between two looks, and how it stands at the later one. */
export interface Figures {
  /** null where there was no look before. */
  readonly tokensPerSecond: number | null;
  /** null where there was no look before. */
  readonly callsPerSecond: number | null;
  /** null where no call was answered. @unit ms */
  readonly p50Ms: number | null;
  /** @unit ms */
  readonly p99Ms: number | null;
  readonly queuedInputs: number;
  readonly queuedTokens: number;
  readonly runningInputs: number;
  readonly queueSeconds: number;
  readonly serverBytes: number;
  /** Memory of each executor, by its name. */
  readonly executors: readonly { readonly name: string; readonly bytes: number }[];
  /** Memory of each device that tells it. @unit bytes */
  readonly devices: readonly { readonly name: string; readonly usedBytes: number; readonly bytes: number }[];
  readonly executorsReady: number;
  readonly restarts: number;
  readonly refusals: readonly { readonly what: string; readonly reason: string; readonly count: number }[];
}

/** What is answered without a device says nothing about how fast models run. */
const controlMethods: ReadonlySet<string> = new Set(['initialize', 'info', 'ping', 'shutdown', 'unknown']);
const isTask = ({ method = '' }: Sample['labels']) =>
  !controlMethods.has(method) && !method.startsWith('notifications');

/** One bucket of a histogram: how many values were at most its bound. */
export interface Bucket {
  readonly bound: number;
  readonly count: number;
}

/**
 * The value below which a share of all values lies, evenly spread inside a bucket as Prometheus does it; null where
 * there is no value. What lies above the last finite bound is that bound.
 */
export function quantile(buckets: readonly Bucket[], share: number): number | null {
  const sorted = buckets.toSorted((left, right) => left.bound - right.bound);
  const total = sorted.at(-1)?.count ?? 0;
  if (total <= 0) return null;
  const rank = share * total;
  let previous: Bucket = { bound: 0, count: 0 };
  for (const bucket of sorted) {
    if (bucket.count >= rank) {
      if (bucket.bound === Infinity) return previous.bound;
      const inBucket = bucket.count - previous.count;
      const part = inBucket === 0 ? 1 : (rank - previous.count) / inBucket;
      return previous.bound + (bucket.bound - previous.bound) * part;
    }
    previous = bucket;
  }
  return previous.bound;
}

function bucketsBetween(before: Samples, after: Samples, name: string): Bucket[] {
  const bounds = new Set(after.filter((sample) => sample.name === name).map(({ labels }) => labels['le'] ?? '+Inf'));
  return [...bounds].map((le) => {
    const isMeant = (labels: Sample['labels']) => labels['le'] === le && isTask(labels);
    return {
      bound: le === '+Inf' ? Infinity : Number(le),
      count: Math.max(0, sumOf(after, name, isMeant) - sumOf(before, name, isMeant)),
    };
  });
}

const refusalMetrics = [
  ['request', 'trivec_refused_requests_total'],
  ['call', 'trivec_refused_calls_total'],
  ['key', 'trivec_key_refusals_total'],
] as const;

/** Figures of the time between two looks; of the later one alone where there is none before it. */
export function figuresOf(before: Look | null, after: Look): Figures {
  const now = (name: string) => sumOf(after.samples, name);
  // A counter that fell was begun again: the server is another one.
  const rate = (name: string, isMeant?: (labels: Sample['labels']) => boolean) => {
    if (before === null) return null;
    const seconds = Math.max(0.001, (after.atMs - before.atMs) / 1000);
    return Math.max(0, sumOf(after.samples, name, isMeant) - sumOf(before.samples, name, isMeant)) / seconds;
  };
  const buckets = before === null ? [] : bucketsBetween(before.samples, after.samples, 'trivec_call_seconds_bucket');
  const milliseconds = (share: number) => {
    const value = quantile(buckets, share);
    return value === null ? null : value * 1000;
  };
  return {
    tokensPerSecond: rate('trivec_run_tokens_total'),
    callsPerSecond: rate('trivec_calls_total', isTask),
    p50Ms: milliseconds(0.5),
    p99Ms: milliseconds(0.99),
    queuedInputs: now('trivec_queued_inputs'),
    queuedTokens: now('trivec_queued_tokens'),
    runningInputs: now('trivec_running_inputs'),
    queueSeconds: now('trivec_queue_seconds'),
    serverBytes: now('trivec_server_resident_bytes'),
    executors: after.samples
      .filter(({ name }) => name === 'trivec_executor_resident_bytes')
      .map(({ labels, value }) => ({ name: labels['executor'] ?? labels['device'] ?? '', bytes: value })),
    devices: after.samples
      .filter(({ name }) => name === 'trivec_device_memory_used_bytes')
      .map(({ labels: { device = '' }, value }) => ({
        name: device,
        usedBytes: value,
        bytes: sumOf(after.samples, 'trivec_device_memory_bytes', (labels) => labels['device'] === device),
      })),
    executorsReady: now('trivec_executors_ready'),
    restarts: now('trivec_executor_restarts_total'),
    refusals: refusalMetrics.flatMap(([what, metric]) =>
      after.samples
        .filter(({ name, value }) => name === metric && value > 0)
        .map(({ labels, value }) => ({
          what: labels['key'] === undefined ? what : `${what} ${labels['key']}`,
          reason: labels['reason'] ?? '',
          count: value,
        })),
    ),
  };
}
