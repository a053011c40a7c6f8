import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadMinilm } from '../unit/tokenize/minilm.ts';
import type { TextTokenizer } from '../../src/tokenize/tokenizer.ts';

interface GoldenText {
  readonly text: string;
  readonly ids: readonly number[];
  readonly tokensBeforeTruncation?: number;
}

function goldenTexts(file: string): GoldenText[] {
  const [, ...lines] = readFileSync(new URL(`data/${file}`, import.meta.url), 'utf8')
    .trim()
    .split('\n');
  return lines.map((line) => JSON.parse(line) as GoldenText);
}

describe('ids of the reference implementation', () => {
  let tokenizer: TextTokenizer;
  let untruncated: TextTokenizer;

  beforeAll(async () => {
    tokenizer = await loadMinilm(256);
    untruncated = await loadMinilm(100_000);
  });

  it('600 random Unicode strings have exactly the reference ids', async () => {
    const golden = goldenTexts('wordpiece.ids.jsonl');
    expect(golden).toHaveLength(600);
    const results = await untruncated.tokenize(golden.map(({ text }) => text));
    for (const [index, { text, ids }] of golden.entries()) {
      expect({ text, ids: [...(results[index]?.ids ?? [])] }).toEqual({ text, ids });
    }
  });

  it('texts that break servers have exactly the reference ids and lengths, cut at 256', async () => {
    const golden = goldenTexts('minilm.embed.jsonl');
    expect(golden.length).toBeGreaterThan(10);
    const results = await tokenizer.tokenize(golden.map(({ text }) => text));
    for (const [index, { text, ids, tokensBeforeTruncation = 0 }] of golden.entries()) {
      const result = results[index];
      expect({ text, ids: [...(result?.ids ?? [])] }).toEqual({ text, ids });
      expect(result?.isTruncated).toBe(tokensBeforeTruncation > 256);
      if (result?.isTotalMinimum === true) expect(result.totalTokens).toBeLessThanOrEqual(tokensBeforeTruncation);
      else expect(result?.totalTokens).toBe(tokensBeforeTruncation);
    }
  });
});
