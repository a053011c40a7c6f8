import { describe, expect, it } from 'vitest';
import { readSample, sumOf, workBetween } from '../../../src/bench/server-metrics.ts';
import type { MetricsSample } from '../../../src/bench/server-metrics.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';

const page = (scale: number) =>
  `
# HELP trivec_runs_total Batches run, by device
# TYPE trivec_runs_total counter
trivec_runs_total{device="cpu:0"} ${scale}
trivec_runs_total{device="cpu:1"} ${3 * scale}
trivec_run_inputs_total{device="cpu:0"} ${8 * scale}
trivec_run_tokens_total{device="cpu:0"} ${900 * scale}
trivec_run_padded_tokens_total{device="cpu:0"} ${1000 * scale}
trivec_run_seconds_total{device="a } b"} ${2.5 * scale}
trivec_run_predicted_seconds_total{device="cpu:0"} ${2 * scale}
trivec_queue_seconds 0.25
`;

const sampleOf = (text: string): MetricsSample => {
  const sample = readSample(text);
  if (sample === null) throw new Error('no sample');
  return sample;
};

describe('a page of metrics', () => {
  it('a metric is summed over its labels, and one with a longer name is another', () => {
    expect(sumOf(page(1), 'trivec_runs_total')).toBe(4);
    expect(sumOf(page(1), 'trivec_run_seconds_total')).toBe(2.5);
    expect(sumOf(page(1), 'trivec_run')).toBeNull();
    expect(sumOf('a_total 1e3 1700000000\n', 'a_total')).toBe(1000);
  });

  it('gives what was done between two looks', () => {
    expect(workBetween(sampleOf(page(1)), sampleOf(page(3)), [0.5, 2, 1])).toEqual({
      paddingEfficiency: 0.9,
      inputsPerRun: 2,
      tokensPerRun: 225,
      runOverPredicted: 1.25,
      maxQueueSeconds: 2,
    });
  });

  it('what a server does not count, or did not do, is unknown', () => {
    const old = page(1).replaceAll(/^trivec_run_(padded|predicted).*\n/gmu, '');
    expect(workBetween(sampleOf(old), sampleOf(old.replaceAll(' 900', ' 950')), [])).toEqual({
      paddingEfficiency: null,
      inputsPerRun: null,
      tokensPerRun: null,
      runOverPredicted: null,
      maxQueueSeconds: null,
    });
  });

  it('the page of another server is none', () => {
    expect(readSample('# TYPE te_request_count counter\nte_request_count 3\n')).toBeNull();
    expect(readSample('<html>')).toBeNull();
  });

  it('the page of this server before its first run counts as zero', async () => {
    const fresh = await createMetrics().registry.metrics();
    expect(sampleOf(fresh).counters).toMatchObject({ runs: 0, inputs: 0, tokens: 0, seconds: 0 });
    const work = workBetween(sampleOf(fresh), sampleOf(page(1)), []);
    expect(work).toMatchObject({ inputsPerRun: 2, paddingEfficiency: 0.9 });
  });
});
