import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocuments, readQueries } from '../support/corpus.ts';
import { startServed, type Served } from '../support/served.ts';

const timeoutMs = 120_000;
const deadlineFlags = ['--deadline-ms', String(timeoutMs)];

const [query = '', otherQuery = ''] = readQueries().map(({ text }) => text);
const texts = readDocuments()
  .slice(0, 12)
  .map(({ text }) => text);

/** All four methods, forms of an answer that are computed from kept rows, and how many rows each asks for. */
const asks: readonly { name: string; method: string; params: Record<string, unknown>; rows: number }[] = [
  { name: 'embed', method: 'embed', params: { inputs: texts }, rows: 12 },
  { name: 'embed of one query', method: 'embed', params: { inputs: [query], kind: 'query' }, rows: 1 },
  { name: 'embed in int8', method: 'embed', params: { inputs: texts, 'x-trivec': { output: 'int8' } }, rows: 12 },
  { name: 'embed in base64', method: 'embed', params: { inputs: texts, encoding: 'f32-base64' }, rows: 12 },
  { name: 'embed/sparse', method: 'embed/sparse', params: { texts }, rows: 12 },
  { name: 'embed/multi', method: 'embed/multi', params: { inputs: texts, kind: 'document' }, rows: 12 },
  // The query's rows are one more.
  { name: 'rerank', method: 'rerank', params: { query, passages: texts }, rows: 13 },
  { name: 'rerank for another query', method: 'rerank', params: { query: otherQuery, passages: texts }, rows: 13 },
];

interface Answer extends Record<string, unknown> {
  readonly usage: { readonly inputTokens: number; readonly computeMs: number; readonly device?: string };
}

const valuesOf = ({ usage, ...values }: Answer) => ({ ...values, inputTokens: usage.inputTokens });

describe('a server with a result cache', { timeout: timeoutMs }, () => {
  let plain: Served;
  let cached: Served;
  beforeAll(async () => {
    plain = await startServed({ flags: deadlineFlags });
    cached = await startServed({ flags: [...deadlineFlags, '--result-cache-bytes', '67108864'] });
  }, timeoutMs);
  afterAll(async () => {
    await plain.end();
    await cached.end();
  });

  async function metricOf(served: Served, name: string): Promise<number> {
    const text = await (await fetch(`${served.baseUrl}/metrics`)).text();
    return Number(new RegExp(`^trivec_${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(text)?.[1]);
  }

  it.each(asks)('$name: gives what a server without one gives, bit for bit, at first and again', async (ask) => {
    const expected = valuesOf(await plain.call<Answer>(ask.method, ask.params));
    expect(valuesOf(await cached.call<Answer>(ask.method, ask.params))).toEqual(expected);
    const hits = await metricOf(cached, 'result_cache_hits_total');
    const runs = await metricOf(cached, 'runs_total');
    const again = await cached.call<Answer>(ask.method, ask.params);
    expect(valuesOf(again)).toEqual(expected);
    expect(again.usage.computeMs).toBe(0);
    expect(again.usage).not.toHaveProperty('device');
    expect(await metricOf(cached, 'result_cache_hits_total')).toBe(hits + ask.rows);
    expect(await metricOf(cached, 'runs_total')).toBe(runs);
  });

  it('runs only the new text of a list that it knows', async () => {
    const inputs = [...texts, 'a text that nobody has sent before'];
    const misses = await metricOf(cached, 'result_cache_misses_total');
    const expected = valuesOf(await plain.call<Answer>('embed', { inputs }));
    await cached.call('embed', { inputs: texts });
    const answer = await cached.call<Answer>('embed', { inputs });
    expect(valuesOf(answer)).toEqual(expected);
    expect(answer.usage.device).toBe('cpu:0');
    expect(await metricOf(cached, 'result_cache_misses_total')).toBe(misses + 1);
  });

  it('shows the memory that it takes, within its bound', async () => {
    const bytes = await metricOf(cached, 'result_cache_bytes');
    expect(bytes).toBeGreaterThan(texts.length * 384 * 4);
    expect(bytes).toBeLessThanOrEqual(67_108_864);
  });

  it('is off unless it is asked for: nothing is looked up and nothing is kept', async () => {
    for (const name of ['result_cache_hits_total', 'result_cache_misses_total', 'result_cache_bytes']) {
      expect(await metricOf(plain, name), name).toBe(0);
    }
  });
});
