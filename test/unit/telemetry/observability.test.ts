import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createIdleMetrics } from '../../support/declared-metrics.ts';
import { observabilityFolder, readAlerts, readDashboard, readOwnAlerts } from '../../support/observability.ts';
import { readPromql } from '../../support/promql.ts';

/** Labels that Prometheus adds to everything it scrapes. */
const scrapeLabels = ['instance', 'job'];

/** Every name that a query may select, with the labels that its series have. */
function knownSeries(): Map<string, readonly string[]> {
  const metrics = createIdleMetrics();
  const declared = metrics.registry.getMetricsAsArray() as unknown as {
    readonly name: string;
    readonly type: string;
    readonly labelNames: readonly string[];
  }[];
  const known = new Map<string, readonly string[]>([['up', scrapeLabels]]);
  for (const { name, type, labelNames } of declared) {
    const labels = [...labelNames, ...scrapeLabels];
    if (type !== 'histogram') known.set(name, labels);
    else for (const part of ['bucket', 'sum', 'count']) known.set(`${name}_${part}`, [...labels, 'le']);
  }
  return known;
}

const functions = new Set([
  'absent',
  'avg',
  'count',
  'histogram_quantile',
  'increase',
  'last_over_time',
  'max',
  'min',
  'rate',
  'sum',
]);

/** What is wrong with the names of an expression. */
function problemsOf(expression: string): string[] {
  const known = knownSeries();
  const names = readPromql(expression);
  const available = new Set(names.selectors.flatMap(({ metric }) => known.get(metric) ?? []));
  return [
    ...names.selectors.flatMap(({ metric, labels }) => {
      const own = known.get(metric);
      if (own === undefined) return [`no metric ${metric}`];
      return labels.filter((label) => !own.includes(label)).map((label) => `${metric} has no label ${label}`);
    }),
    ...names.groupings.filter((label) => !available.has(label)).map((label) => `no label ${label}`),
    ...names.functions.filter((name) => !functions.has(name)).map((name) => `no function ${name}`),
    ...(names.selectors.length === 0 ? ['nothing is selected'] : []),
  ];
}

describe('every alert', () => {
  it.each(readOwnAlerts().map(({ place, expression }) => [place, expression]))(
    '%s names metrics and labels that the server has',
    (_, expression) => {
      expect(problemsOf(expression)).toEqual([]);
    },
  );

  it('that the issue of a server in trouble needs is there', () => {
    const alerts = readOwnAlerts().map(({ place }) => place);
    expect(alerts).toEqual(
      expect.arrayContaining([
        'TrivecNotReady',
        'TrivecQueueSecondsHigh',
        'TrivecCallsRefused',
        'TrivecRestartLoop',
        'TrivecLostRuns',
        'TrivecNonFiniteResults',
        'TrivecMemoryGrowth',
        'TrivecSlowerThanPredicted',
      ]),
    );
    expect(new Set(alerts).size).toBe(alerts.length);
  });

  it('has a case in which it is raised', () => {
    const cases = readFileSync(`${observabilityFolder}/alerts.test.yml`, 'utf8');
    const raised = [...cases.matchAll(/alertname: (\w+)\n\s+eval_time: \S+\n\s+exp_alerts:/g)].map(([, name]) => name);
    expect([...new Set(raised)].toSorted()).toEqual(
      readOwnAlerts()
        .map(({ place }) => place)
        .toSorted(),
    );
  });
});

describe('every panel of the dashboard', () => {
  it.each(readDashboard().expressions.map(({ place, expression }) => [place, expression]))(
    '%s names metrics and labels that the server has: %s',
    (_, expression) => {
      expect(problemsOf(expression)).toEqual([]);
    },
  );

  it('and every metric of the server is shown by one of them', () => {
    const shown = new Set(
      readDashboard().expressions.flatMap(({ expression }) =>
        readPromql(expression).selectors.map(({ metric }) => metric.replace(/_(bucket|sum|count)$/, '')),
      ),
    );
    const hidden = [...new Set([...knownSeries().keys()].map((name) => name.replace(/_(bucket|sum|count)$/, '')))]
      .filter((name) => !shown.has(name))
      .toSorted();
    // Shown by others: runs by their batches, ready executors by their states; what a cache takes is a setting.
    expect(hidden).toEqual([
      'trivec_executors_ready',
      'trivec_queued_tokens',
      'trivec_result_cache_bytes',
      'trivec_run_inputs_total',
      'trivec_runs_total',
      'up',
    ]);
  });
});

describe('the reader of expressions', () => {
  it('tells a metric, a label, a grouping and a function apart', () => {
    const text =
      'sum by (le, method) (rate(a_bucket{x="y,z{", w=~"b"}[5m] offset 1h)) / ignoring(job) c > 1.5e9 and on () d';
    expect(readPromql(text)).toEqual({
      selectors: [
        { metric: 'a_bucket', labels: ['x', 'w'] },
        { metric: 'c', labels: [] },
        { metric: 'd', labels: [] },
      ],
      groupings: ['le', 'method', 'job'],
      functions: ['sum', 'rate'],
    });
  });

  it.each([
    ['rate(trivec_nothing_total[5m])', 'no metric trivec_nothing_total'],
    ['trivec_call_seconds', 'no metric trivec_call_seconds'],
    ['trivec_ready{device="cpu:0"}', 'trivec_ready has no label device'],
    ['sum by (model) (trivec_ready)', 'no label model'],
    ['raet(trivec_ready)', 'no function raet'],
    ['vector(1)', 'no function vector'],
  ])('finds what is wrong with %s', (expression, problem) => {
    expect(problemsOf(expression)).toContain(problem);
  });

  it('reads rules in both spellings', () => {
    const text = '- alert: A\n  expr: up == 0\n  for: 1m\n- alert: B\n  expr: |\n    a\n      > b\n  for: 1m\n';
    expect(readAlerts(text)).toEqual([
      { place: 'A', expression: 'up == 0' },
      { place: 'B', expression: 'a > b' },
    ]);
  });
});
