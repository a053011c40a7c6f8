/** Owns the rules of which files of a repository are taken. */
import { describe, expect, it } from 'vitest';
import {
  companionsByName,
  companionsByReference,
  describingFilesOf,
  graphFilesOf,
} from '../../../src/model/hub/choose-files.ts';
import type { HubFile } from '../../../src/model/hub/file-hash.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { refusalOf } from './rig.ts';

const filesNamed = (...paths: string[]): HubFile[] => paths.map((path) => ({ path, sizeBytes: 1, hash: '0' }));
const pathsOf = (files: readonly HubFile[]): string[] => files.map(({ path }) => path);
const repository = requireRepository('org/name');

describe('files that describe a model', () => {
  it.each([
    'config.json',
    'config_sentence_transformers.json',
    'modules.json',
    'sentence_bert_config.json',
    'tokenizer.json',
    'tokenizer_config.json',
    'special_tokens_map.json',
    'vocab.txt',
    'sentencepiece.bpe.model',
    'chat_template.jinja',
    '1_Pooling/config.json',
    '2_Dense/model.safetensors',
    'query_0_SparseStaticEmbedding/config.json',
  ])('%s is taken', (path) => {
    expect(pathsOf(describingFilesOf(filesNamed(path)))).toEqual([path]);
  });

  it.each([
    'pytorch_model.bin',
    '2_Dense/pytorch_model.bin',
    'colbert_linear.pt',
    'model.safetensors',
    'modeling_new.py',
    'README.md',
    'training_args.bin',
    'data.pkl',
    'onnx/config.json',
    'openvino/openvino_model.bin',
    'tf_model.h5',
    '.gitattributes',
    'images/config.json.png',
  ])('%s is not', (path) => {
    expect(describingFilesOf(filesNamed(path))).toEqual([]);
  });
});

describe('graph files', () => {
  const files = filesNamed(
    'onnx/model.onnx',
    'onnx/model_fp16.onnx',
    'onnx/model_quantized.onnx',
    'onnx/model_O2.onnx',
  );

  it.each([
    ['auto', ['onnx/model_quantized.onnx']],
    ['int8', ['onnx/model_quantized.onnx']],
    ['fp16', ['onnx/model_fp16.onnx']],
    ['fp32', ['onnx/model.onnx']],
    ['all', ['onnx/model_quantized.onnx', 'onnx/model_fp16.onnx', 'onnx/model.onnx']],
  ] as const)('%s takes %j', (wanted, expected) => {
    expect(pathsOf(graphFilesOf(files, repository, wanted))).toEqual(expected);
  });

  it('a repository without a graph is refused', async () => {
    const refusal = await refusalOf(
      Promise.resolve().then(() => graphFilesOf(filesNamed('config.json'), repository, 'auto')),
    );
    expect(refusal).toContain('it has no ONNX file at all');
  });

  it('weight files go with the graph of their name only', () => {
    const [graph, ...others] = filesNamed(
      'onnx/model.onnx',
      'onnx/model.onnx_data',
      'onnx/model.onnx_data_12',
      'onnx/model.onnx.data',
      'onnx/model_fp16.onnx_data',
      'onnx/model.onnx_database',
      'model.onnx_data',
    );
    expect(pathsOf(companionsByName(others, graph!))).toEqual([
      'onnx/model.onnx_data',
      'onnx/model.onnx_data_12',
      'onnx/model.onnx.data',
    ]);
  });

  it('weight files that a graph names are beside it, and nowhere else', async () => {
    const all = filesNamed('onnx/model.onnx', 'onnx/Constant_7_attr__value', 'secret');
    const [graph] = all;
    expect(pathsOf(companionsByReference(all, graph!, ['Constant_7_attr__value']))).toEqual([
      'onnx/Constant_7_attr__value',
    ]);
    for (const reference of ['missing', '../secret', '/secret']) {
      const refusal = await refusalOf(Promise.resolve().then(() => companionsByReference(all, graph!, [reference])));
      expect(refusal).toContain(`keeps its weights in ${reference}, which the repository does not have`);
    }
  });
});
