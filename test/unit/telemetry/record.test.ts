import { Writable } from 'node:stream';
import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { errorCatalogue } from '../../../src/errors.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';
import { createRunRecorder, recordCall } from '../../../src/telemetry/record.ts';
import type { EndedCall } from '../../../src/telemetry/record.ts';
import { allTasks, createHarness } from '../rpc/harness.ts';

/** A log in memory at a level. */
function createLines(level: string) {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
      done();
    },
  });
  return { lines, log: pino({ level, base: null }, stream) };
}

const knownMethods = ['embed', 'embed/sparse', 'embed/multi', 'rerank', 'ping', 'info', 'initialize', 'shutdown'];
const bounds: Readonly<Record<string, ReadonlySet<string>>> = {
  method: new Set([...knownMethods, 'retrieve', 'fetch', 'undefined', 'notifications/cancel']),
  outcome: new Set(['ok', ...Object.keys(errorCatalogue)]),
  transport: new Set(['http', 'stdio']),
  model: new Set(['dense', 'dense-2', 'sparse', 'tokens', 'pairs']),
  reason: new Set(['overloaded', 'deadlineExceeded', 'unavailable', 'tooLarge', 'draining']),
};

/** Every label value that a registry holds, but the buckets of histograms. */
async function labelsOf({ registry }: ReturnType<typeof createMetrics>): Promise<[string, string][]> {
  const text = await registry.metrics();
  const pairs = [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name = '', value = '']) => [name, value]);
  return pairs.filter(([name]) => name !== 'le') as [string, string][];
}

const anyMethod = fc.oneof(fc.constantFrom(...knownMethods), fc.string({ maxLength: 40 }));
const anyModel = fc.oneof(fc.constantFrom('dense', 'pairs', null), fc.string({ maxLength: 40 }));

describe('labels of calls', () => {
  it('come from bounded sets, whatever methods, models and texts callers send', async () => {
    const metrics = createMetrics();
    const { log } = createLines('silent');
    await fc.assert(
      fc.asyncProperty(anyMethod, anyModel, fc.string(), fc.string(), async (method, model, text, requestId) => {
        const harness = createHarness(allTasks());
        const params = { inputs: [text], query: text, passages: [text], model, 'x-trivec': { model } };
        await harness.call(method, params, { requestId });
        for (const record of harness.records) recordCall(record, metrics, log, false);
      }),
      { numRuns: 300 },
    );
    const labels = await labelsOf(metrics);
    expect(new Set(labels.map(([name]) => name))).toEqual(new Set(['method', 'outcome', 'transport', 'model']));
    const strays = labels.filter(([name, value]) => bounds[name]?.has(value) !== true);
    expect(strays).toEqual([]);
  });
});

/** What one call is counted as. */
async function recordsOf(
  act: (harness: ReturnType<typeof createHarness>) => unknown,
  isDraining = false,
): Promise<{ text: string; records: readonly EndedCall[] }> {
  const harness = createHarness(allTasks());
  await act(harness);
  const metrics = createMetrics();
  for (const record of harness.records) recordCall(record, metrics, createLines('silent').log, isDraining);
  return { text: await metrics.registry.metrics(), records: harness.records };
}

describe('a call', () => {
  it('that is answered counts its texts and tokens under its method and model', async () => {
    const { text } = await recordsOf(({ call }) => call('embed', { inputs: ['a', 'bc'] }));
    expect(text).toContain('trivec_call_inputs_total{method="embed",model="dense"} 2');
    expect(text).toContain('trivec_call_tokens_total{method="embed",model="dense"} 7');
  });

  it('that fails counts no texts', async () => {
    const { text } = await recordsOf(({ call }) => call('embed', { inputs: ['a'], 'x-trivec': { model: 'none' } }));
    expect(text).not.toContain('trivec_call_inputs_total{');
    expect(text).not.toContain('trivec_refused_calls_total{');
  });

  it('whose deadline has passed is a refusal of that reason', async () => {
    const { text } = await recordsOf(({ call }) => call('embed', { inputs: ['a'], _meta: { deadlineMs: 0 } }));
    expect(text).toContain('trivec_refused_calls_total{reason="deadlineExceeded"} 1');
  });

  it('that comes while the server ends is a refusal of its own reason', async () => {
    const { text } = await recordsOf((harness) => {
      harness.drain();
      return harness.call('embed', { inputs: ['a'] });
    }, true);
    expect(text).toContain('trivec_refused_calls_total{reason="draining"} 1');
    expect(text).not.toContain('reason="unavailable"');
  });

  it('has one line in the log at debug, with the name of its request and none of its text', async () => {
    const { records } = await recordsOf(({ call }) => call('embed', { inputs: ['moonshine'] }, { requestId: 'r-7' }));
    const { lines, log } = createLines('debug');
    for (const record of records) recordCall(record, createMetrics(), log, false);
    expect(lines).toMatchObject([{ requestId: 'r-7', method: 'embed', outcome: 'ok', inputs: 1, tokens: 11 }]);
    expect(JSON.stringify(lines)).not.toContain('moonshine');
  });
});

describe('a lost batch', () => {
  it('is counted by kind, and its line names the requests that it held', async () => {
    const metrics = createMetrics();
    const { lines, log } = createLines('info');
    const lost = { executorId: 'cpu:0/0', kind: 'executorGone', reason: 'it was killed', items: 3 };
    createRunRecorder(metrics, log).onLostRun({ ...lost, requestIds: ['a', 'b'] });
    expect(lines).toMatchObject([{ requestIds: ['a', 'b'], items: 3 }]);
    expect(await metrics.registry.metrics()).toContain('trivec_lost_runs_total{kind="executorGone"} 1');
  });
});
