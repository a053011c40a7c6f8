/** Owns the embedded default model's tokenizer as tests use it, and texts of the kinds that break tokenizers. */
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { loadTokenizer } from '../../../src/tokenize/load.ts';
import { openReferenceLibrary } from '../../../src/tokenize/reference.ts';
import type { TextTokenizer } from '../../../src/tokenize/tokenizer.ts';

export const minilmFolder = fileURLToPath(new URL('../../../models/all-MiniLM-L6-v2', import.meta.url));

/** A tokenizer that has no reason to warn. */
export function loadQuietly(modelFolder: string, maxTokens: number): Promise<TextTokenizer> {
  return loadTokenizer({
    modelFolder,
    maxTokens,
    warn: (message) => {
      throw new Error(message);
    },
  });
}

export const loadMinilm = (maxTokens = 256) => loadQuietly(minilmFolder, maxTokens);
export const openMinilm = () => openReferenceLibrary(minilmFolder);

/** Any well-formed Unicode text, and literal special tokens. */
export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc
    .array(fc.constantFrom('[SEP]', '[CLS]', '</s>', ' ', 'word', '\u4e2d', '\u{1f600}', 'a\u0301'), { maxLength: 12 })
    .map((parts) => parts.join('')),
);

/** Long texts that mix what gives no tokens, one token for many characters, and one for each. */
export const longText = fc
  .array(
    fc.oneof(
      fc.nat(4_000).map((count) => ' '.repeat(count)),
      fc.nat(2_000).map((count) => 'x'.repeat(count)),
      fc.nat(1_500).map((count) => 'word, '.repeat(count)),
      fc.nat(2_000).map((count) => '\u4e2d'.repeat(count)),
      fc.nat(900).map((count) => '\u{1f600}'.repeat(count)),
      fc.nat(600).map((count) => '\u{1f600} '.repeat(count)),
      fc.nat(1_500).map((count) => '\u30ab\u3099'.repeat(count)),
      fc.string({ unit: 'binary', maxLength: 200 }),
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((parts) => parts.join(''));
