/** Owns the tiny models as folders in the Hugging Face layout. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { encodeTinyGraph } from './tiny-graph.ts';
import type { TinyOutput } from './tiny-graph.ts';
import { createTinyWeights, tinySizes, tinyVocabulary } from './tiny-weights.ts';
import type { TinyWeights } from './tiny-weights.ts';

interface TinyKind {
  readonly architecture: string;
  readonly output: TinyOutput;
  readonly labels: number;
}

/** Every tiny model: what its `config.json` claims and what its graph ends with. */
export const tinyKinds = {
  /** One logit: a reranker. */
  crossEncoder: { architecture: 'BertForSequenceClassification', output: 'logits', labels: 1 },
  /** One logit behind a Sigmoid that the export kept. */
  crossEncoderWithSigmoid: { architecture: 'BertForSequenceClassification', output: 'probability', labels: 1 },
  /** Five logits: no reranker. */
  fiveLabels: { architecture: 'BertForSequenceClassification', output: 'logits', labels: 5 },
  /** Mean-pooled, normalised vectors. */
  dense: { architecture: 'BertModel', output: 'hiddenState', labels: 1 },
} as const satisfies Record<string, TinyKind>;

/** Name of a tiny model. */
export type TinyKindName = keyof typeof tinyKinds;

/** The weights that the tiny model of this kind has. */
export const tinyWeightsOf = (kind: TinyKindName): TinyWeights => createTinyWeights(tinyKinds[kind].labels);

/** The id of a word that the tiny vocabulary has. */
export function tinyId(token: string): number {
  const id = tinyVocabulary.indexOf(token);
  if (id < 0) throw new Error(`the tiny vocabulary lacks "${token}"`);
  return id;
}

function tokenizerFile(): unknown {
  const special = (token: string, typeId: number) => ({ SpecialToken: { id: token, type_id: typeId } });
  const sequence = (id: 'A' | 'B', typeId: number) => ({ Sequence: { id, type_id: typeId } });
  const described = (token: string) => [token, { id: token, ids: [tinyId(token)], tokens: [token] }] as const;
  const specialTokens = tinyVocabulary.filter((token) => /^\[[A-Z]+\]$/u.test(token));
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content) => ({
      id: tinyId(content),
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: {
      type: 'BertNormalizer',
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: 'BertPreTokenizer' },
    post_processor: {
      type: 'TemplateProcessing',
      single: [special('[CLS]', 0), sequence('A', 0), special('[SEP]', 0)],
      pair: [special('[CLS]', 0), sequence('A', 0), special('[SEP]', 0), sequence('B', 1), special('[SEP]', 1)],
      special_tokens: Object.fromEntries([described('[CLS]'), described('[SEP]')]),
    },
    decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(tinyVocabulary.map((token, id) => [token, id])),
    },
  };
}

function configFile({ architecture, labels }: TinyKind): unknown {
  const isClassifier = architecture.endsWith('ForSequenceClassification');
  const names = Object.fromEntries(Array.from({ length: labels }, (_, id) => [String(id), `LABEL_${String(id)}`]));
  return {
    architectures: [architecture],
    model_type: 'bert',
    hidden_size: tinySizes.hidden,
    intermediate_size: tinySizes.inner,
    hidden_act: 'relu',
    num_attention_heads: 1,
    num_hidden_layers: 1,
    max_position_embeddings: tinySizes.positions,
    type_vocab_size: tinySizes.segments,
    vocab_size: tinyVocabulary.length,
    pad_token_id: tinyId('[PAD]'),
    ...(isClassifier ? { id2label: names } : {}),
  };
}

/** The files that tell sentence-transformers how rows become a vector. */
const poolingFiles: Readonly<Record<string, unknown>> = {
  'modules.json': [
    { idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' },
    { idx: 1, name: '1', path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
    { idx: 2, name: '2', path: '2_Normalize', type: 'sentence_transformers.models.Normalize' },
  ],
  '1_Pooling/config.json': {
    word_embedding_dimension: tinySizes.hidden,
    pooling_mode_cls_token: false,
    pooling_mode_mean_tokens: true,
  },
};

/** Writes a tiny model to `folder`, byte for byte the same each time. */
export async function writeTinyModel(kindName: TinyKindName, folder: string): Promise<void> {
  const kind: TinyKind = tinyKinds[kindName];
  const documents: Readonly<Record<string, unknown>> = {
    'config.json': configFile(kind),
    'tokenizer.json': tokenizerFile(),
    'tokenizer_config.json': { tokenizer_class: 'BertTokenizer', model_max_length: tinySizes.positions },
    ...(kind.output === 'hiddenState' ? poolingFiles : {}),
  };
  const files: readonly (readonly [string, string | Uint8Array])[] = [
    ...Object.entries(documents).map(([path, content]) => [path, `${JSON.stringify(content, null, 2)}\n`] as const),
    ['onnx/model.onnx', encodeTinyGraph(tinyWeightsOf(kindName), kind.output)],
  ];
  for (const [path, content] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}
