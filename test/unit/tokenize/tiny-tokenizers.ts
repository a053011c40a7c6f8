/** Owns small tokenizer definitions for tests, each with one trait that real models have. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

type Definition = Readonly<Record<string, unknown>>;

const specialToken = (id: number, content: string) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
});

const numbered = (tokens: readonly string[]) => Object.fromEntries(tokens.map((token, id) => [token, id]));

const words = ['hello', 'world', 'a', 'b', 'the', 'quick', 'fox', '(', ')', 'brown', 'over', 'it', 'jumps', 'times'];

/** WordPiece over a few words, lower-casing, with whatever post-processor and added tokens a test needs. */
export function wordPiece(postProcessor: Definition | null, addedTokens: readonly Definition[] = []): Definition {
  return {
    version: '1.0',
    truncation: { direction: 'Right', max_length: 4, strategy: 'LongestFirst', stride: 0 },
    padding: {
      strategy: { Fixed: 128 },
      direction: 'Right',
      pad_to_multiple_of: null,
      pad_id: 0,
      pad_type_id: 0,
      pad_token: '[PAD]',
    },
    added_tokens: [specialToken(0, '[PAD]'), specialToken(2, '[CLS]'), specialToken(3, '[SEP]'), ...addedTokens],
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: postProcessor,
    decoder: null,
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: numbered(['[PAD]', '[UNK]', '[CLS]', '[SEP]', ...words]),
    },
  };
}

const sequence = (id: 'A' | 'B', type_id: number) => ({ Sequence: { id, type_id } });
const special = (id: string, type_id: number) => ({ SpecialToken: { id, type_id } });
const special_tokens = {
  '[CLS]': { id: '[CLS]', ids: [2], tokens: ['[CLS]'] },
  '[SEP]': { id: '[SEP]', ids: [3], tokens: ['[SEP]'] },
};

/** [CLS] A [SEP] B [SEP] with segments 0 and 1. */
export const bertTemplate: Definition = {
  type: 'TemplateProcessing',
  single: [special('[CLS]', 0), sequence('A', 0), special('[SEP]', 0)],
  pair: [special('[CLS]', 0), sequence('A', 0), special('[SEP]', 0), sequence('B', 1), special('[SEP]', 1)],
  special_tokens,
};

/** A [SEP], and A [SEP] B [SEP]: nothing at the start, as decoders that pool their last token have it. */
export const closingTemplate: Definition = {
  type: 'TemplateProcessing',
  single: [sequence('A', 0), special('[SEP]', 0)],
  pair: [sequence('A', 0), special('[SEP]', 0), sequence('B', 0), special('[SEP]', 0)],
  special_tokens,
};

/** The letters that byte-level tokenizers write bytes as: printable bytes as themselves, the others from U+0100 on. */
function byteLetters(): string[] {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(isPrintable ? byte : next++);
  });
}

/** Byte-level BPE with a few merges and RoBERTa's post-processor: four special tokens around a pair. */
export function byteLevelRoberta(): Definition {
  const merges = ['h e', 'l l', 'he ll', 'hell o', '\u0120 w', '\u0120 \u0120', 'o r', 'a a'];
  const merged = merges.map((merge) => merge.replace(' ', ''));
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: ['<s>', '<pad>', '</s>', '<unk>'].map((content, id) => specialToken(id, content)),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: 'RobertaProcessing',
      sep: ['</s>', 2],
      cls: ['<s>', 0],
      trim_offsets: true,
      add_prefix_space: false,
    },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      vocab: numbered(['<s>', '<pad>', '</s>', '<unk>', ...byteLetters(), ...merged]),
      merges,
    },
  };
}

/** A fresh folder that holds the definition as a model's folder does, until the test ends. */
export async function writeModelFolder(definition: Definition): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-tokenizer-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(definition));
  return folder;
}
