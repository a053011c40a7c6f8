import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { otelcol, startOtelcol } from '../support/otelcol.ts';
import { startServed, type Served } from '../support/served.ts';

/** A span as OTLP says it in JSON. */
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Span['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
}

/** Longest time until spans of an answered call have arrived. @unit ms */
const patienceMs = 30_000;
const serverKind = 2;
const errorStatus = 2;

/** A collector: it takes what is sent to it and keeps it. */
async function startCollector() {
  const requests: ExportRequest[] = [];
  const headers: (string | undefined)[] = [];
  const server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const isExport = request.method === 'POST' && request.url === '/v1/traces';
      if (isExport) requests.push(JSON.parse(body) as ExportRequest);
      if (isExport) headers.push(request.headers['x-tenant'] as string | undefined);
      response.writeHead(isExport ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const spans = () =>
    requests.flatMap(({ resourceSpans }) => resourceSpans.flatMap((r) => r.scopeSpans.flatMap((s) => s.spans)));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    headers,
    text: () => JSON.stringify(requests),
    /** The spans of a trace, once so many of them have arrived. */
    async spansOf(traceId: string, count: number): Promise<readonly Span[]> {
      const endsAtMs = performance.now() + patienceMs;
      for (;;) {
        const found = spans().filter((span) => span.traceId === traceId);
        if (found.length >= count) return found;
        if (performance.now() > endsAtMs) throw new Error(`${count} spans were expected: ${JSON.stringify(found)}`);
        await sleep(50);
      }
    },
    spans,
    close: () => server.close(),
  };
}

const attributesOf = (span: Span): Record<string, unknown> =>
  Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

/** Sends a frame with headers of its own. */
async function send(served: Served, frame: unknown, headers: Record<string, string>): Promise<Response> {
  return fetch(`${served.baseUrl}/rcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(frame),
  });
}

const secret = 'a very private sentence';
const embedFrame = (id: number) => ({ jsonrpc: '2.0', id, method: 'embed', params: { inputs: [secret, 'other'] } });
const parentSpanId = '00f067aa0ba902b7';
const traceIdOf = (digit: string) => digit.repeat(32);

describe('a server with a collector', () => {
  let collector: Awaited<ReturnType<typeof startCollector>>;
  let served: Served;
  beforeAll(async () => {
    collector = await startCollector();
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    };
    served = await startServed({ flags: ['--executors', '1', '--log-level', 'debug'], environment });
  });
  afterAll(async () => {
    await served.end();
    collector.close();
  });

  it('continues the trace of the caller: one server span, and its steps below it, in order', async () => {
    const traceId = traceIdOf('a');
    const headers = {
      traceparent: `00-${traceId}-${parentSpanId}-01`,
      tracestate: 'vendor=1',
      'x-request-id': 'req-42',
    };
    const response = await send(served, embedFrame(1), headers);
    expect(response.status).toBe(200);
    const spans = await collector.spansOf(traceId, 5);
    expect(spans).toHaveLength(5);
    const call = spans.find(({ name }) => name === 'embed');
    expect(call).toMatchObject({ parentSpanId, kind: serverKind, traceState: 'vendor=1' });
    const steps = ['tokenise', 'queue', 'run', 'encode'].map((name) => spans.find((span) => span.name === name));
    for (const step of steps) expect(step?.parentSpanId).toBe(call?.spanId);
    const times = steps.flatMap((step) => [step?.startTimeUnixNano ?? '', step?.endTimeUnixNano ?? '']);
    expect(times.map(BigInt)).toEqual(times.map(BigInt).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    const bounds = [call?.startTimeUnixNano, ...times, call?.endTimeUnixNano].map((time) => BigInt(time ?? '0'));
    expect(bounds[0]! <= bounds[1]! && bounds.at(-2)! <= bounds.at(-1)!).toBe(true);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(5);
    // Wall clock, not the clock of the service.
    expect(Math.abs(Number(bounds[0]! / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  });

  it('says method, model, counts and device of each step, and never a text', async () => {
    const spans = await collector.spansOf(traceIdOf('a'), 5);
    const facts = new Map(spans.map((span) => [span.name, attributesOf(span)]));
    const size = { 'trivec.model': 'all-MiniLM-L6-v2', 'trivec.inputs': 2, 'trivec.tokens': 9 };
    expect(facts.get('embed')).toEqual({
      'rpc.system': 'jsonrpc',
      'rpc.service': 'rcp',
      'rpc.method': 'embed',
      'trivec.outcome': 'ok',
    });
    expect(facts.get('tokenise')).toEqual(size);
    expect(facts.get('queue')).toEqual(size);
    expect(facts.get('run')).toEqual({ ...size, 'trivec.device': 'cpu:0' });
    expect(facts.get('encode')).toEqual({ 'trivec.answer_bytes': expect.any(Number) as number });
    expect(collector.text()).not.toContain('private');
  });

  it('names itself, and heeds the variables that OpenTelemetry defines', async () => {
    await collector.spansOf(traceIdOf('a'), 5);
    const [first] = collector.requests;
    const resource = first?.resourceSpans[0]?.resource.attributes ?? [];
    expect(Object.fromEntries(resource.map(({ key, value }) => [key, Object.values(value)[0]]))).toMatchObject({
      'service.name': 'trivec',
      'deployment.environment.name': 'test',
    });
    expect(new Set(collector.headers)).toEqual(new Set(['blue']));
  });

  it.each([
    ['none', {}],
    ['one that is not valid', { traceparent: `00-${traceIdOf('0')}-${parentSpanId}-01` }],
  ])('begins a trace of its own where the caller sends %s', async (_, headers) => {
    const before = new Set(collector.spans().map(({ traceId }) => traceId));
    await send(served, { jsonrpc: '2.0', id: 2, method: 'ping' }, headers);
    const endsAtMs = performance.now() + patienceMs;
    const fresh = () => collector.spans().find(({ name, traceId }) => name === 'ping' && !before.has(traceId));
    while (fresh() === undefined && performance.now() < endsAtMs) await sleep(50);
    expect(fresh()?.parentSpanId ?? '').toBe('');
  });

  it('records nothing of a trace that the caller does not sample', async () => {
    const traceId = traceIdOf('b');
    const sampled = traceIdOf('c');
    await send(served, embedFrame(3), { traceparent: `00-${traceId}-${parentSpanId}-00` });
    await send(served, embedFrame(4), { traceparent: `00-${sampled}-${parentSpanId}-01` });
    await collector.spansOf(sampled, 5);
    expect(collector.spans().filter((span) => span.traceId === traceId)).toEqual([]);
  });

  it('gives each call of an array a span below that of the caller, and marks the one that failed', async () => {
    const traceId = traceIdOf('d');
    const wrong = { jsonrpc: '2.0', id: 6, method: 'embed', params: { inputs: 7 } };
    const response = await send(served, [embedFrame(5), wrong], { traceparent: `00-${traceId}-${parentSpanId}-01` });
    expect(response.headers.get('server-timing')).toBeNull();
    const spans = (await collector.spansOf(traceId, 6)).filter(({ kind }) => kind === serverKind);
    expect(spans.map((span) => span.parentSpanId)).toEqual([parentSpanId, parentSpanId]);
    expect(spans.map(({ status }) => status.code).toSorted()).toEqual([0, errorStatus]);
    expect(spans.find(({ status }) => status.code === errorStatus)?.status.message).toBe('invalidParams');
  });

  it('names the request and its trace in the line of the call', () => {
    const lines = served
      .stderr()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed.find(({ requestId }) => requestId === 'req-42')).toMatchObject({
      method: 'embed',
      traceId: traceIdOf('a'),
    });
    expect(served.stderr()).not.toContain('private');
  });

  it('says where the time of one call went, in the answer itself', async () => {
    const response = await send(served, embedFrame(7), {});
    const timing = response.headers.get('server-timing') ?? '';
    expect(timing).toMatch(/^tokenise;dur=[\d.]+, queue;dur=[\d.]+, run;dur=[\d.]+, total;dur=[\d.]+$/);
    const [tokenise = 0, queue = 0, run = 0, total = 0] = [...timing.matchAll(/dur=([\d.]+)/g)].map(([, ms]) =>
      Number(ms),
    );
    // Each is rounded to a tenth.
    expect(tokenise + queue + run).toBeLessThanOrEqual(total + 0.2);
    expect(run).toBeGreaterThan(0);
    const ping = await send(served, { jsonrpc: '2.0', id: 8, method: 'ping' }, {});
    expect(ping.headers.get('server-timing')).toMatch(/^total;dur=[\d.]+$/);
  });

  it('sends what is left when it ends', async () => {
    const traceId = traceIdOf('e');
    await send(served, embedFrame(9), { traceparent: `00-${traceId}-${parentSpanId}-01` });
    expect(await served.end()).toBe(0);
    expect(await collector.spansOf(traceId, 5)).toHaveLength(5);
  });
});

describe('a server whose collector is away', () => {
  it('answers all the same, says once that spans are lost, and ends in time', async () => {
    const environment = { TRIVEC_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '20' };
    const served = await startServed({ flags: ['--executors', '1'], environment });
    try {
      await served.call('embed', { inputs: ['a'] });
      await served.call('embed', { inputs: ['b'] });
      const endsAtMs = performance.now() + patienceMs;
      const complaints = () => served.stderr().split('spans could not be exported').length - 1;
      while (complaints() === 0 && performance.now() < endsAtMs) {
        await served.call('ping');
        await sleep(50);
      }
      for (let count = 0; count < 10; count++) await served.call('ping');
      expect(complaints()).toBe(1);
    } finally {
      expect(await served.end()).toBe(0);
    }
  });
});

describe('a server without a collector', () => {
  /**
   * Files of OpenTelemetry that a process has loaded after importing a module of the server; its interfaces do not count,
   * because prom-client loads them too.
   */
  const loadedBy = (module: string) => {
    const script = `
      await import(${JSON.stringify(new URL(`../../dist/${module}`, import.meta.url).href)});
      const { default: Module } = await import('node:module');
      console.log(Object.keys(Module._cache).filter((path) => /@opentelemetry.(?!api.)/.test(path)).length);
    `;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    if (stdout === '') throw new Error(stderr);
    return Number(stdout);
  };

  it('loads nothing of OpenTelemetry that could record a span', () => {
    expect(loadedBy('cli/serve.js')).toBe(0);
    expect(loadedBy('telemetry/otlp.js')).toBeGreaterThan(10);
  });
});

describe.skipIf(otelcol.skip)(
  otelcol.title('the collector of OpenTelemetry, with the settings of this repository'),
  () => {
    it('takes the spans of a call, each with its trace, its parent and its facts', async () => {
      const collector = await startOtelcol();
      const environment = { TRIVEC_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' };
      const served = await startServed({ flags: ['--executors', '1'], environment });
      try {
        const traceId = traceIdOf('f');
        await send(served, embedFrame(1), { traceparent: `00-${traceId}-${parentSpanId}-01` });
        const endsAtMs = performance.now() + patienceMs;
        const names = () => [...collector.text().matchAll(/^ +Name +: (\S+)$/gm)].map(([, name]) => name);
        while (names().length < 5 && performance.now() < endsAtMs) await sleep(50);
        expect(names().toSorted()).toEqual(['embed', 'encode', 'queue', 'run', 'tokenise']);
        const text = collector.text();
        expect(text.match(new RegExp(`Trace ID +: ${traceId}`, 'g'))).toHaveLength(5);
        expect(text.match(new RegExp(`Parent ID +: ${parentSpanId}`, 'g'))).toHaveLength(1);
        expect(text).toContain('trivec.device: Str(cpu:0)');
        expect(text).not.toContain('private');
      } finally {
        await served.end();
        await collector.end();
      }
    });
  },
);
