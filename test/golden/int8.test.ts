import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServed, type Served } from '../support/served.ts';
import { mean, termCosine, wordCount } from './golden-values.ts';
import {
  largestDifference,
  measureDense,
  measureRerank,
  measureRows,
  measureSparse,
  weightsOfOne,
} from './served-values.ts';

const timeoutMs = 120_000;

describe('the served default models (int8) against the reference implementations', { timeout: timeoutMs }, () => {
  let served: Served;
  beforeAll(async () => {
    served = await startServed({ flags: ['--deadline-ms', String(timeoutMs)] });
  });
  afterAll(() => served.end());

  it('names the models, the precision and the pooling in identity', async () => {
    const { capabilities } = await served.call<{ capabilities: Record<string, { identity: string }> }>('info');
    expect(capabilities['embed']?.identity).toMatch(/all-MiniLM-L6-v2.*int8.*mean/u);
    expect(capabilities['sparseEmbed']?.identity).toMatch(/splade-tiny.*int8.*splade/u);
    expect(capabilities['multiVector']?.identity).toMatch(/all-MiniLM-L6-v2.*int8.*tokens/u);
  });

  it('dense: cosine >= 0.985 for three words or more and in the mean, >= 0.96 for degenerate texts', async () => {
    const { golden, cosines, usage } = await measureDense(served);
    expect(golden).toHaveLength(42);
    // A word of 300 characters is as degenerate as one alone, whatever stands beside it.
    const isOrdinary = (text: string) => wordCount(text) >= 3 && !text.split(/\s/u).some((word) => word.length > 100);
    expect(cosines.filter(({ text }) => isOrdinary(text)).length).toBeGreaterThan(20);
    const short = cosines.filter(({ text, cosine }) => !(cosine >= (isOrdinary(text) ? 0.985 : 0.96)));
    expect(short).toEqual([]);
    expect(mean(cosines.map(({ cosine }) => cosine))).toBeGreaterThanOrEqual(0.985);
    expect(usage.inputTokens).toBe(golden.reduce((sum, { ids }) => sum + ids.length, 0));
    expect(usage.truncated).toEqual(
      golden.flatMap(({ tokensBeforeTruncation }, index) => (tokensBeforeTruncation > 256 ? [index] : [])),
    );
    expect(usage.truncated.length).toBeGreaterThan(0);
  });

  it('dense: each text alone counts exactly the tokens of the reference', async () => {
    const { golden } = await measureDense(served);
    const counted = await Promise.all(
      golden.map(async ({ text }) => {
        const { usage } = await served.call<{ usage: { inputTokens: number } }>('embed', { inputs: [text] });
        return { text, tokens: usage.inputTokens };
      }),
    );
    expect(counted).toEqual(golden.map(({ text, ids }) => ({ text, tokens: ids.length })));
  });

  it.each(['query', 'document'] as const)(
    'rows of a %s: as many as the reference has, cosine >= 0.93, >= 0.97 in the mean of a text',
    async (kind) => {
      const texts = await measureRows(served, kind);
      expect(texts).toHaveLength(31);
      expect(texts.map(({ text, rows }) => ({ text, rows }))).toEqual(
        texts.map(({ text, expectedRows }) => ({ text, rows: expectedRows })),
      );
      for (const { text, cosines } of texts) {
        expect(Math.min(...cosines), text).toBeGreaterThanOrEqual(0.93);
        expect(mean(cosines), text).toBeGreaterThanOrEqual(0.97);
      }
    },
  );

  it('sparse: cosine >= 0.975, weights within 15 % of the strongest, only weak terms come and go', async () => {
    const { golden, texts, usage } = await measureSparse(served);
    expect(golden).toHaveLength(42);
    for (const { text, expected, found } of texts) {
      const strongest = Math.max(0, ...expected.values());
      const tolerance = Math.max(0.25, 0.15 * strongest);
      expect(termCosine(expected, found), text).toBeGreaterThanOrEqual(0.975);
      expect(largestDifference(expected, found), text).toBeLessThanOrEqual(tolerance);
      const gone = Math.max(0, ...weightsOfOne(expected, found));
      // A term that came or went may also be one whose weight moved within the tolerance.
      expect(gone, text).toBeLessThanOrEqual(Math.max(0.25, 0.1 * strongest));
    }
    expect(usage.inputTokens).toBe(
      golden.reduce((sum, { tokensBeforeTruncation }) => sum + Math.min(512, tokensBeforeTruncation), 0),
    );
    expect(usage.truncated).toEqual(
      golden.flatMap(({ tokensBeforeTruncation }, index) => (tokensBeforeTruncation > 512 ? [index] : [])),
    );
    expect(usage.truncated.length).toBeGreaterThan(0);
  });

  it('colbert: scores near the golden ones, and passages whose golden scores lie apart in their order', async () => {
    for (const { query, expected, scores, order } of await measureRerank(served)) {
      expect(scores).toHaveLength(expected.length);
      // The rows of a query lie within a cosine of 0.97 to the reference, so a score moves by a few hundredths a row.
      const tolerance = 0.25;
      expect(Math.max(...scores.map((score, index) => Math.abs(score - (expected[index] ?? NaN))))).toBeLessThan(
        tolerance,
      );
      expect([...order].sort((a, b) => a - b)).toEqual(scores.map((_, index) => index));
      const goldenInOrder = order.map((index) => expected[index] ?? NaN);
      for (const [position, score] of goldenInOrder.entries()) {
        const bestBehind = Math.max(-Infinity, ...goldenInOrder.slice(position + 1));
        expect(score, `${query}: ${order.join()}`).toBeGreaterThan(bestBehind - tolerance);
      }
    }
  });
});
