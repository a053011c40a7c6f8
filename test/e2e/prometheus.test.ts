import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { observabilityFolder, readDashboard, readOwnAlerts, readScalingQueries } from '../support/observability.ts';
import { requirement } from '../support/require.ts';
import { startServed, type Served } from '../support/served.ts';

const isThere = ['prometheus', 'promtool'].every((name) => spawnSync(name, ['--version']).status === 0);
const prometheus = requirement('prometheus', isThere, 'no prometheus and promtool commands');

/** Longest time for Prometheus to do what it is asked. @unit ms */
const patienceMs = 30_000;

const promtool = (...words: readonly string[]) =>
  spawnSync('promtool', words, { cwd: observabilityFolder, encoding: 'utf8' });

describe.skipIf(prometheus.skip)(prometheus.title('promtool'), () => {
  it.each([
    ['check', 'config', 'prometheus.yml'],
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ])('%s %s %s has nothing to say against them', (...words) => {
    const { status, stdout, stderr } = promtool(...words);
    expect(status, stdout + stderr).toBe(0);
  });

  it.each([
    ['a threshold', 'trivec_queue_seconds > 5', 'trivec_queue_seconds > 500'],
    ['a duration', 'for: 2m', 'for: 20m'],
    ['a label', '{reason!="draining"}', '{reason!="overloaded"}'],
    ['the other side', '> 1.5', '< 1.5'],
  ])('finds it where %s of a rule is another', (_, from, to) => {
    const folder = mkdtempSync(join(tmpdir(), 'trivec-rules-'));
    try {
      cpSync(observabilityFolder, folder, { recursive: true });
      const rules = readFileSync(join(folder, 'alerts.yml'), 'utf8');
      expect(rules).toContain(from);
      writeFileSync(join(folder, 'alerts.yml'), rules.replaceAll(from, to));
      expect(spawnSync('promtool', ['test', 'rules', 'alerts.test.yml'], { cwd: folder }).status).not.toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** A case for promtool: a gauge of 3 that is read at an interval, and a query at every second of two minutes. */
function scalingCase(expression: string, intervalS: number) {
  const wanted = expression.startsWith('sum(') ? '{}' : '{pod="a"}';
  const seconds = Array.from({ length: 120 }, (_, index) => 1200 + index);
  return {
    interval: `${intervalS}s`,
    input_series: [{ series: 'trivec_queue_seconds{pod="a"}', values: '3x100' }],
    promql_expr_test: seconds.map((second) => ({
      expr: expression,
      eval_time: `${second}s`,
      exp_samples: [{ labels: wanted, value: 3 }],
    })),
  };
}

describe.skipIf(prometheus.skip)(prometheus.title('the queries of the autoscalers'), () => {
  it.each(readScalingQueries())(
    'that of $place finds the gauge at every moment, read every 15, 30 or 60 s',
    ({ expression }) => {
      const folder = mkdtempSync(join(tmpdir(), 'trivec-scaling-'));
      try {
        const tests = [15, 30, 60].map((intervalS) => scalingCase(expression, intervalS));
        writeFileSync(join(folder, 'test.yml'), JSON.stringify({ evaluation_interval: '15s', tests }));
        const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'test.yml'], {
          cwd: folder,
          encoding: 'utf8',
        });
        expect(status, (stdout + stderr).slice(0, 2000)).toBe(0);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});

describe.skipIf(prometheus.skip)(prometheus.title('Prometheus, with the rules of this repository'), () => {
  let folder: string;
  let served: Served;
  let child: ChildProcess;
  let baseUrl: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'trivec-prometheus-'));
    served = await startServed({ flags: ['--executors', '1'] });
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [`${observabilityFolder}/alerts.yml`],
      scrape_configs: [{ job_name: 'trivec', static_configs: [{ targets: [new URL(served.baseUrl).host] }] }],
    };
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const flags = [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      '--web.listen-address=127.0.0.1:0',
    ];
    child = spawn('prometheus', flags, { stdio: ['ignore', 'ignore', 'pipe'] });
    baseUrl = await listeningUrl(child);
  });
  afterAll(async () => {
    const ended = new Promise((resolve) => child.once('close', resolve));
    child.kill('SIGKILL');
    await Promise.all([ended, served.end()]);
    rmSync(folder, { recursive: true, force: true });
  });

  /** What the API gives. */
  const get = async (path: string, query: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(`${baseUrl}/api/v1/${path}?${new URLSearchParams(query).toString()}`);
    return (await response.json()) as { status: string; error?: string; data: Record<string, unknown> };
  };
  /** The series of an instant query. */
  const query = async (expression: string) => {
    const { status, error, data } = await get('query', { query: expression });
    if (status !== 'success') throw new Error(`${expression}: ${String(error)}`);
    return data['result'] as { metric: Record<string, string>; value: [number, string] }[];
  };
  const until = async (expression: string) => {
    const endsAtMs = performance.now() + patienceMs;
    for (;;) {
      const series = await query(expression);
      if (series.length > 0) return series;
      if (performance.now() > endsAtMs) throw new Error(`${expression} gave nothing`);
      await sleep(100);
    }
  };

  it('scrapes the server: what was called is what it knows', async () => {
    await served.call('embed', { inputs: ['one', 'two', 'three'] });
    await served.refusal('embed', { inputs: ['late'], _meta: { deadlineMs: 0 } });
    const [inputs] = await until('trivec_call_inputs_total{method="embed"} == 3');
    expect(inputs?.metric).toMatchObject({ job: 'trivec', model: 'all-MiniLM-L6-v2' });
    expect(await until('trivec_refused_calls_total{reason="deadlineExceeded"} == 1')).toHaveLength(1);
    expect(await until('trivec_ready == 1')).toHaveLength(1);
    expect(await until('sum(trivec_executors{state=~"ready|busy"}) == 1')).toHaveLength(1);
    const [memory] = await until('trivec_executor_resident_bytes');
    expect(Number(memory?.value[1])).toBeGreaterThan(20_000_000);
    expect(await until('trivec_build_info{onnxruntime=~"\\\\d.*", node=~"v.*"}')).toHaveLength(1);
  });

  it.each(readDashboard().expressions.map(({ place, expression }) => [place, expression]))(
    'evaluates the panel %s: %s',
    async (_, expression) => {
      await expect(query(expression)).resolves.toBeInstanceOf(Array);
    },
  );

  it('reads exactly the alerts that the tests read, and none of them fires', async () => {
    const { data } = await get('rules');
    const groups = data['groups'] as { rules: { name: string; query: string; state: string }[] }[];
    const rules = groups.flatMap((group) => group.rules);
    const own = readOwnAlerts();
    expect(rules.map(({ name }) => name)).toEqual(own.map(({ place }) => place));
    for (const [index, { expression }] of own.entries()) {
      const { data: both } = await get('format_query', { query: expression });
      const { data: theirs } = await get('format_query', { query: rules[index]?.query ?? '' });
      expect(theirs).toEqual(both);
    }
    expect(rules.filter(({ state }) => state === 'firing')).toEqual([]);
  });
});

/** Where Prometheus says that it listens. */
function listeningUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const address = /msg="Listening on" address=(\S+)/.exec(said)?.[1];
      if (address !== undefined && said.includes('Server is ready')) resolve(`http://${address}`);
    });
    child.once('close', (code) => {
      reject(new Error(`prometheus ended with ${String(code)}: ${said}`));
    });
  });
}
