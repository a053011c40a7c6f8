import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bundledModelsDir } from '../../../src/model/bundled.ts';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import { createWordPieces, type WordPieceDefinition } from '../../../src/tokenize/word-pieces.ts';
import { readDocuments, readQueries } from '../../support/corpus.ts';

const folder = join(bundledModelsDir, 'all-MiniLM-L6-v2');
const definition = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8')) as WordPieceDefinition;
const encode = createWordPieces(definition);
const reference = await openReferenceLibrary(folder);

async function referenceIds(text: string): Promise<number[]> {
  const [ids = []] = await reference.encodeBatch([text]);
  return Array.from(ids);
}

/** Words, parts of words, marks, white space and what is not ordinary, in any mixture. */
const pieces = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('the', 'Boundary', 'layer', 'aerodynamics', 'x1', "don't", '3.14', 'ZZzqx') },
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme-ascii', maxLength: 12 }) },
  { weight: 2, arbitrary: fc.constantFrom(' ', '  ', '\n', '\t', '\r\n', '-', '--', '.', '[', '<', '[SEP]', '`', '~') },
  { weight: 1, arbitrary: fc.constantFrom('\u0000', '\u0007', '\u007f', '\u000b', 'é', '漢', '\u00a0', '\u212a') },
  { weight: 1, arbitrary: fc.integer({ min: 95, max: 105 }).map((length) => 'a'.repeat(length)) },
);
const texts = fc.array(pieces, { maxLength: 12 }).map((parts) => parts.join(''));

describe('word pieces of ordinary text', () => {
  it('are those of the reference, or left to it', async () => {
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const ids = encode?.(text) ?? null;
        if (ids !== null) expect(ids).toEqual(await referenceIds(text));
      }),
      { numRuns: 3000 },
    );
  });

  it('are those of the reference for every character of ASCII beside a letter', async () => {
    for (let code = 0; code < 128; code += 1) {
      const text = `a${String.fromCharCode(code)}B ${String.fromCharCode(code)}`;
      const ids = encode?.(text) ?? null;
      if (ids !== null) expect(ids, `character ${code}`).toEqual(await referenceIds(text));
    }
  });

  it('are found for nearly all texts of the corpus, and are right for all of them', async () => {
    const corpus = [...readDocuments(), ...readQueries()].map(({ text }) => text);
    const found = corpus.map((text) => encode?.(text) ?? null);
    expect(found.filter((ids) => ids !== null).length / corpus.length).toBeGreaterThan(0.95);
    for (const [index, ids] of found.entries()) {
      if (ids !== null) expect(ids).toEqual(await referenceIds(corpus[index] ?? ''));
    }
  });

  it('are not claimed for text that could be changed or hold an added token', () => {
    for (const text of ['naïve', 'a\u0000b', 'a\u007fb', 'a [SEP] b', '<mask>', 'K\u0130', 'x'.repeat(20_000)]) {
      expect(encode?.(text), text.slice(0, 10)).toBeNull();
    }
  });

  it.each([
    ['another normaliser', { normalizer: { type: 'Lowercase' } }],
    ['no normaliser', { normalizer: null }],
    ['control characters that stay', { normalizer: { ...definition.normalizer, clean_text: false } }],
    ['another split', { pre_tokenizer: { type: 'Whitespace' } }],
    ['another model', { model: { ...definition.model, type: 'BPE' } }],
    ['added tokens that look like words', { added_tokens: [{ content: 'wing' }] }],
    ['no unknown token', { model: { ...definition.model, unk_token: '[NONE]' } }],
  ])('are not made for %s', (_, change) => {
    expect(createWordPieces({ ...definition, ...change })).toBeNull();
  });

  it('keep the case where the definition does', () => {
    const cased = createWordPieces({ ...definition, normalizer: { ...definition.normalizer, lowercase: false } });
    expect(cased?.('wing')).not.toEqual(cased?.('WING'));
    expect(encode?.('wing')).toEqual(encode?.('WING'));
  });
});
