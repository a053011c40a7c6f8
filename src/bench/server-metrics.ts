/** Owns reading what a server of this program counts about its own runs. */

/** Sums over all devices. */
export interface RunCounters {
  readonly runs: number;
  readonly inputs: number;
  readonly tokens: number;
  readonly paddedTokens: number | null;
  readonly seconds: number;
  readonly predictedSeconds: number | null;
}

/** One look at `/metrics`. */
export interface MetricsSample {
  readonly counters: RunCounters;
  /** Predicted time until all that waits has run. @unit s */
  readonly queueSeconds: number | null;
}

/** What a server did during a load; null where it does not tell, or ran nothing. */
export interface ServerWork {
  /** Real tokens of those that ran with their padding. */
  readonly paddingEfficiency: number | null;
  readonly inputsPerRun: number | null;
  readonly tokensPerRun: number | null;
  /** Time in the engine over the time that the fitted model foretold. */
  readonly runOverPredicted: number | null;
  /** Longest predicted queue that was seen. @unit s */
  readonly maxQueueSeconds: number | null;
}

/** The sum of a metric over its labels; null where the text has none of that name. */
export function sumOf(text: string, name: string): number | null {
  const values = [...text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})?[ \t]+(\S+)/gmu)]
    .filter(([, found]) => found === name)
    .map(([, , value]) => Number(value));
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** What a page of metrics says; null where it is not one of this program's. */
export function readSample(text: string): MetricsSample | null {
  const [runs, inputs, tokens, seconds] = ['runs', 'run_inputs', 'run_tokens', 'run_seconds'].map((name) =>
    sumOf(text, `trivec_${name}_total`),
  );
  const isOurs = /^# TYPE trivec_run/mu.test(text);
  if (!isOurs) return null;
  return {
    counters: {
      runs: runs ?? 0,
      inputs: inputs ?? 0,
      tokens: tokens ?? 0,
      paddedTokens: sumOf(text, 'trivec_run_padded_tokens_total'),
      seconds: seconds ?? 0,
      predictedSeconds: sumOf(text, 'trivec_run_predicted_seconds_total'),
    },
    queueSeconds: sumOf(text, 'trivec_queue_seconds'),
  };
}

/** `part / whole`; null where there is nothing to divide or to divide by. */
function share(part: number | null, whole: number | null): number | null {
  return part === null || whole === null || part === 0 || whole === 0 ? null : part / whole;
}

/** What was done between two looks. */
export function workBetween(before: MetricsSample, after: MetricsSample, queueSeconds: readonly number[]): ServerWork {
  const from = before.counters;
  const to = after.counters;
  // A counter that a label brings to life in between started at zero.
  const grown = (key: keyof RunCounters): number | null => {
    const end = to[key];
    return end === null ? null : end - (from[key] ?? 0);
  };
  return {
    paddingEfficiency: share(grown('tokens'), grown('paddedTokens')),
    inputsPerRun: share(grown('inputs'), grown('runs')),
    tokensPerRun: share(grown('tokens'), grown('runs')),
    runOverPredicted: share(grown('seconds'), grown('predictedSeconds')),
    maxQueueSeconds: queueSeconds.length === 0 ? null : Math.max(...queueSeconds),
  };
}
