import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServed, type Served } from '../support/served.ts';
import { mean, termCosine } from './golden-values.ts';
import {
  largestDifference,
  measureDense,
  measureRerank,
  measureRows,
  measureSparse,
  weightsOfOne,
} from './served-values.ts';

const timeoutMs = 120_000;

describe('the served default models in fp16 against the reference implementations', { timeout: timeoutMs }, () => {
  let served: Served;
  beforeAll(async () => {
    served = await startServed({ flags: ['--precision', 'fp16', '--deadline-ms', String(timeoutMs)] });
  });
  afterAll(() => served.end());

  it('identity says fp16', async () => {
    const { capabilities } = await served.call<{ capabilities: Record<string, { identity: string }> }>('info');
    for (const name of ['embed', 'sparseEmbed', 'multiVector']) expect(capabilities[name]?.identity).toMatch(/fp16/u);
  });

  it('dense: cosine >= 0.9995 for every text', async () => {
    const { cosines } = await measureDense(served);
    expect(cosines).toHaveLength(42);
    expect(cosines.filter(({ cosine }) => !(cosine >= 0.9995))).toEqual([]);
  });

  it.each(['query', 'document'] as const)('rows of a %s: cosine >= 0.9995 for every row', async (kind) => {
    for (const { text, rows, expectedRows, cosines } of await measureRows(served, kind)) {
      expect(rows, text).toBe(expectedRows);
      expect(Math.min(...cosines), text).toBeGreaterThanOrEqual(0.9995);
      expect(mean(cosines), text).toBeGreaterThanOrEqual(0.9995);
    }
  });

  it('sparse: cosine >= 0.9995, weights within 0.01, terms that come or go weigh next to nothing', async () => {
    const { texts } = await measureSparse(served);
    for (const { text, expected, found } of texts) {
      expect(termCosine(expected, found), text).toBeGreaterThanOrEqual(0.9995);
      expect(largestDifference(expected, found), text).toBeLessThanOrEqual(0.01);
      expect(Math.max(0, ...weightsOfOne(expected, found)), text).toBeLessThanOrEqual(0.001);
      expect(Math.abs(expected.size - found.size), text).toBeLessThanOrEqual(1);
    }
  });

  it('colbert: scores within 0.02 of the golden ones', async () => {
    for (const { expected, scores } of await measureRerank(served)) {
      expect(scores).toHaveLength(expected.length);
      for (const [index, score] of scores.entries()) {
        expect(Math.abs(score - (expected[index] ?? NaN)), `passage ${String(index)}`).toBeLessThan(0.02);
      }
    }
  });
});
