/** Owns the rules of which files of a repository are taken. */
import { describe, expect, it } from 'vitest';
import { thisCpu } from '../../../src/model/graph-variant.ts';
import {
  companionsByName,
  companionsByReference,
  describingFilesOf,
  graphFilesOf,
} from '../../../src/model/hub/choose-files.ts';
import type { WantedPrecision } from '../../../src/model/hub/choose-files.ts';
import type { HubFile } from '../../../src/model/hub/file-hash.ts';
import { refusalOf } from './rig.ts';

const filesNamed = (...paths: string[]): HubFile[] => paths.map((path) => ({ path, sizeBytes: 1, hash: '0' }));
const pathsOf = (files: readonly HubFile[]): string[] => files.map(({ path }) => path);
const chosenFrom = (files: readonly HubFile[], wanted: WantedPrecision): string[] => {
  const found = graphFilesOf(files, { wanted, device: thisCpu, ownPath: null });
  return 'graphs' in found ? pathsOf(found.graphs) : [found.problem];
};

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
    'query_0_SparseStaticEmbedding/model.safetensors',
    'router_config.json',
    'artifact.metadata',
    'colbert_linear.pt',
    'sparse_linear.safetensors',
  ])('%s is taken', (path) => {
    expect(pathsOf(describingFilesOf(filesNamed(path)))).toEqual([path]);
  });

  it.each([
    'pytorch_model.bin',
    '2_Dense/pytorch_model.bin',
    'colbert_linear.py',
    '2_Dense/weights.pt',
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
    ['all', ['onnx/model_quantized.onnx', 'onnx/model.onnx', 'onnx/model_fp16.onnx']],
  ] as const)('%s takes %j', (wanted, expected) => {
    expect(chosenFrom(files, wanted)).toEqual(expected);
  });

  it.each([
    ['fp16', 'onnx/model.onnx'],
    ['int8', 'onnx/model.onnx'],
    ['fp32', 'onnx/model.onnx'],
  ] as const)('%s that is not shipped takes the file that it can be made from', (wanted, expected) => {
    expect(chosenFrom(filesNamed('onnx/model.onnx', 'onnx/model_q4.onnx'), wanted)).toEqual([expected]);
  });

  it('a device that computes in float16 is given such a graph', () => {
    const gpu = { ...thisCpu, kind: 'cuda', hasFloat16: true } as const;
    expect(graphFilesOf(files, { wanted: 'auto', device: gpu, ownPath: null })).toMatchObject({
      graphs: [{ path: 'onnx/model_fp16.onnx' }],
    });
  });

  it('a graph of another name is the one that the catalogue says', () => {
    const choice = { wanted: 'auto', device: thisCpu, ownPath: 'own.onnx' } as const;
    expect(graphFilesOf(filesNamed('own.onnx', 'other.onnx'), choice)).toMatchObject({
      graphs: [{ path: 'own.onnx' }],
    });
  });

  it('all takes no 4-bit graph, which nothing serves', () => {
    expect(chosenFrom(filesNamed('onnx/model_q4.onnx', 'onnx/model.onnx'), 'all')).toEqual(['onnx/model.onnx']);
  });

  it.each([
    [['config.json'], 'it has no ONNX file at all'],
    [['onnx/model_O2.onnx'], 'its ONNX files are onnx/model_O2.onnx'],
    [['onnx/model_q4.onnx'], 'its ONNX files are onnx/model_q4.onnx'],
  ])('of %j are none, and that is said', (paths, expected) => {
    const choice = { wanted: 'auto', device: thisCpu, ownPath: null } as const;
    expect(graphFilesOf(filesNamed(...paths), choice)).toEqual({
      problem: expect.stringContaining(expected) as string,
    });
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
