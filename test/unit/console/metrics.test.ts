import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { figuresOf, quantile } from '../../../console/src/figures.ts';
import { createLookHistory } from '../../../console/src/look-history.ts';
import { parseMetrics, sumOf } from '../../../console/src/prometheus.ts';
import { createIdleMetrics } from '../../support/declared-metrics.ts';

describe('the parser of the metrics', () => {
  it('reads names, labels and values, and leaves comments out', () => {
    const text =
      '# HELP a_total x\n# TYPE a_total counter\na_total{le="+Inf",method="embed"} 3\nb 1.5e-3 1700000000\n\n';
    expect(parseMetrics(text)).toEqual([
      { name: 'a_total', labels: { le: '+Inf', method: 'embed' }, value: 3 },
      { name: 'b', labels: {}, value: 0.0015 },
    ]);
  });

  it('reads what is no number as such, and skips lines that are no samples', () => {
    expect(parseMetrics('a NaN\nb +Inf\nc -Inf\nd\ne x\n{f="1"} 2')).toEqual([
      { name: 'a', labels: {}, value: NaN },
      { name: 'b', labels: {}, value: Infinity },
      { name: 'c', labels: {}, value: -Infinity },
    ]);
  });

  it('gives back any value of a label, however it had to be escaped', () => {
    const escape = (value: string) => value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n');
    fc.assert(
      // Only a line break ends a line: others stand in a value as they are.
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const [sample] = parseMetrics(`a{reason="${escape(value)}",b="}"} 1`);
        expect(sample?.labels).toEqual({ reason: value, b: '}' });
      }),
    );
  });

  it('reads every metric that the server declares', async () => {
    const { registry } = createIdleMetrics();
    const text = await registry.metrics();
    const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(parseMetrics(text)).toHaveLength(lines.length);
  });

  it('sums what a test lets through', () => {
    const samples = parseMetrics('a{x="1"} 2\na{x="2"} 3\nb 9');
    expect(sumOf(samples, 'a')).toBe(5);
    expect(sumOf(samples, 'a', ({ x }) => x === '2')).toBe(3);
    expect(sumOf(samples, 'c')).toBe(0);
  });
});

describe('a quantile of a histogram', () => {
  const buckets = [
    { bound: 1, count: 50 },
    { bound: 2, count: 100 },
    { bound: Infinity, count: 100 },
  ];
  it.each([
    [0.25, 0.5],
    [0.5, 1],
    [0.75, 1.5],
    [1, 2],
  ])('%s lies at %s where values are spread evenly', (share, value) => {
    expect(quantile(buckets, share)).toBeCloseTo(value);
  });

  it('is none without a value, and the last finite bound where values lie above it', () => {
    expect(quantile([{ bound: 1, count: 0 }], 0.5)).toBeNull();
    expect(quantile([], 0.5)).toBeNull();
    expect(
      quantile(
        [
          { bound: Infinity, count: 4 },
          { bound: 1, count: 0 },
        ],
        0.5,
      ),
    ).toBe(1);
  });
});

describe('the figures of two looks', () => {
  const look = (atMs: number, text: string) => ({ atMs, samples: parseMetrics(text) });
  const before = look(
    1000,
    'trivec_run_tokens_total{device="cpu:0"} 100\ntrivec_calls_total{method="embed"} 1\ntrivec_calls_total{method="ping"} 1\n' +
      'trivec_call_seconds_bucket{le="0.1",method="embed"} 1\ntrivec_call_seconds_bucket{le="+Inf",method="embed"} 1',
  );
  const after = look(
    3000,
    'trivec_run_tokens_total{device="cpu:0"} 300\ntrivec_calls_total{method="embed"} 5\ntrivec_calls_total{method="ping"} 99\n' +
      'trivec_call_seconds_bucket{le="0.1",method="embed"} 3\ntrivec_call_seconds_bucket{le="+Inf",method="embed"} 3\n' +
      'trivec_call_seconds_bucket{le="0.1",method="ping"} 0\ntrivec_call_seconds_bucket{le="+Inf",method="ping"} 98\n' +
      'trivec_executor_resident_bytes{device="cpu:0",executor="cpu:0/0"} 7\ntrivec_executor_restarts_total 2\n' +
      'trivec_device_memory_used_bytes{device="cuda:0"} 5\ntrivec_device_memory_bytes{device="cuda:0"} 9\n' +
      'trivec_refused_calls_total{reason="overloaded"} 4\ntrivec_refused_calls_total{reason="draining"} 0\n' +
      'trivec_key_refusals_total{key="fast",reason="rate"} 3',
  );

  it('are rates of what lies between them, and leave out calls that need no device', () => {
    expect(figuresOf(before, after)).toMatchObject({ tokensPerSecond: 100, callsPerSecond: 2, p50Ms: 50 });
  });

  it('name memory, restarts and the refusals that there were', () => {
    expect(figuresOf(before, after)).toMatchObject({
      executors: [{ name: 'cpu:0/0', bytes: 7 }],
      devices: [{ name: 'cuda:0', usedBytes: 5, bytes: 9 }],
      restarts: 2,
      refusals: [
        { what: 'call', reason: 'overloaded', count: 4 },
        { what: 'key fast', reason: 'rate', count: 3 },
      ],
    });
  });

  it('are never below zero where a server was started again', () => {
    expect(figuresOf(after, { ...before, atMs: 5000 })).toMatchObject({
      tokensPerSecond: 0,
      callsPerSecond: 0,
      p50Ms: null,
    });
  });

  it('are no rates where there was no look before', () => {
    expect(figuresOf(null, after)).toMatchObject({
      tokensPerSecond: null,
      callsPerSecond: null,
      p50Ms: null,
      restarts: 2,
    });
  });

  it('ask for no metric that the server does not declare', async () => {
    const source = readFileSync(new URL('../../../console/src/figures.ts', import.meta.url), 'utf8');
    const declared = new Set((await createIdleMetrics().registry.getMetricsAsJSON()).map(({ name }) => name));
    const asked = [...source.matchAll(/'(trivec_\w+)'/g)].map(([, name = '']) => name.replace(/_bucket$/, ''));
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter((name) => !declared.has(name))).toEqual([]);
  });
});

describe('the history of looks', () => {
  const everyMs = 2000;
  const look = (second: number, tokens: number) => ({
    atMs: second * 1000,
    samples: parseMetrics(`trivec_run_tokens_total ${tokens}\ntrivec_queued_inputs 3`),
  });
  const ratesOf = ({ figures }: ReturnType<typeof createLookHistory>) =>
    figures().map((each) => (each === null ? null : each.tokensPerSecond));

  it('has rates between two looks that follow each other, and none for the first', () => {
    const history = createLookHistory(10, everyMs);
    history.take(look(0, 0));
    history.take(look(2, 100));
    expect(ratesOf(history)).toEqual([null, 50]);
    expect(history.figures()[0]?.queuedInputs).toBe(3);
  });

  it('has no rate over a time in which nobody looked or nothing was answered, and a gap as long as that', () => {
    const history = createLookHistory(10, everyMs);
    history.take(look(0, 0));
    history.take(look(2, 100));
    history.miss(8000);
    history.take(look(8.1, 9000));
    history.take(look(10.1, 9200));
    expect(ratesOf(history)).toEqual([null, 50, null, null, null, 100]);
    expect(history.figures()[2]).toBeNull();
    expect(history.figures()[4]?.queuedInputs).toBe(3);
  });

  it('has none over the sleep of a machine, which nobody tells it of', () => {
    const history = createLookHistory(5, everyMs);
    history.take(look(0, 0));
    history.take(look(600, 9000));
    expect(ratesOf(history)).toEqual([null, null, null, null, null]);
  });
});
