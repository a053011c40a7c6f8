/** Owns the rules of what a model folder must hold. */
import { mkdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ModelProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import { choosePrompts } from '../../../src/model/config-file.ts';
import { poolingNames } from '../../../src/model/module-files.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import type { ModelUse } from '../../../src/model/role.ts';
import { writeTinyModel } from '../../support/tiny-models.ts';
import type { TinyKindName } from '../../support/tiny-models.ts';
import { tinyVocabulary } from '../../support/tiny-weights.ts';
import { editJson, problemsOf, shippedModels, withFolder } from './model-folders.ts';

/** The problems of a tiny model after `change`. */
async function problemsAfter(
  kind: TinyKindName,
  use: ModelUse,
  change: (folder: string) => Promise<unknown>,
  precision: 'auto' | 'int8' = 'auto',
): Promise<readonly string[]> {
  return withFolder(async (parent) => {
    const folder = join(parent, 'tiny');
    await writeTinyModel(kind, folder);
    await change(folder);
    return problemsOf(readModelFolder(folder, [use], precision));
  });
}

/** Appends to a graph file what `addition` holds. */
async function appendToGraph(folder: string, addition: Parameters<typeof create<typeof ModelProtoSchema>>[1]) {
  const path = join(folder, 'onnx/model.onnx');
  const added = toBinary(ModelProtoSchema, create(ModelProtoSchema, addition));
  await writeFile(path, Buffer.concat([await readFile(path), added]));
}

describe('manifest of the shipped models', () => {
  it('MiniLM is a mean-pooled, normalised encoder of 256 tokens at int8', async () => {
    const model = await readModelFolder(join(shippedModels, 'all-MiniLM-L6-v2'), ['embed', 'multiVector'], 'auto');
    expect(model).toMatchObject({
      modelId: 'all-MiniLM-L6-v2',
      precision: 'int8',
      revision: '5ac6ffdbe0b0',
      maxTokens: 256,
      hiddenSize: 384,
      vocabularySize: 30522,
      pooling: 'mean',
      isNormalized: true,
      isMatryoshka: false,
      heads: ['dense', 'rows', 'maxSim'],
    });
    expect(model.tokenRows.documentSkipTokens).toHaveLength(32);
    expect(new Set(model.tokenRows.documentSkipTokens).size).toBe(32);
    expect(model.selfChecks.map(({ head }) => head)).toEqual(['dense', 'rows']);
  });

  it('only the checks of heads in use come along', async () => {
    const model = await readModelFolder(join(shippedModels, 'all-MiniLM-L6-v2'), ['embed'], 'fp16');
    expect(model.selfChecks.map(({ head }) => head)).toEqual(['dense']);
    expect(model.precision).toBe('fp16');
  });

  it('splade-tiny is a sparse model of 512 tokens', async () => {
    const model = await readModelFolder(join(shippedModels, 'splade-tiny'), ['sparseEmbed'], 'auto');
    expect(model).toMatchObject({ pooling: null, maxTokens: 512, heads: ['sparse'], precision: 'int8' });
    expect(model.selfChecks).toHaveLength(1);
  });
});

describe('manifest of a folder that no catalogue knows', () => {
  it('a cross-encoder works from its files alone', async () => {
    await withFolder(async (parent) => {
      await writeTinyModel('crossEncoder', join(parent, 'tiny'));
      expect(await readModelFolder(join(parent, 'tiny'), ['rerank'], 'auto')).toMatchObject({
        precision: 'fp32',
        maxTokens: 64,
        vocabularySize: tinyVocabulary.length,
        heads: ['logit'],
        selfChecks: [],
        tokenRows: { documentSkipTokens: [] },
        scoreActivation: 'sigmoid',
      });
    });
  });

  it('int8 is preferred to fp32 on a CPU, and fp32 to fp16', async () => {
    await withFolder(async (parent) => {
      const folder = join(parent, 'tiny');
      await writeTinyModel('crossEncoder', folder);
      const graph = await readFile(join(folder, 'onnx/model.onnx'));
      const precisionNow = async () =>
        (await readModelFolder(folder, ['rerank'], 'auto')).graphPath.slice(folder.length);
      const steps = [
        ['model_fp16', 'model'],
        ['model_quantized', 'model_quantized'],
        ['model_int8', 'model_int8'],
      ] as const;
      for (const [added, chosen] of steps) {
        await writeFile(join(folder, `onnx/${added}.onnx`), graph);
        expect(await precisionNow()).toBe(`/onnx/${chosen}.onnx`);
      }
    });
  });

  it.each([
    [1e30, 64],
    [0, 64],
    ['512', 64],
    [undefined, 64],
    [32, 32],
  ])('model_max_length %s beside 64 positions gives %i tokens', async (stated, expected) => {
    await withFolder(async (parent) => {
      const folder = join(parent, 'tiny');
      await writeTinyModel('crossEncoder', folder);
      await editJson(join(folder, 'tokenizer_config.json'), { model_max_length: stated });
      expect((await readModelFolder(folder, ['rerank'], 'auto')).maxTokens).toBe(expected);
    });
  });
});

describe('refusal of a folder', () => {
  it('five labels make no reranker', async () => {
    const problems = await problemsAfter('fiveLabels', 'rerank', () => Promise.resolve());
    expect(problems[0]).toContain('has 5 labels');
  });

  it.each<[TinyKindName, ModelUse, RegExp]>([
    [
      'dense',
      'rerank',
      /^rerank-model: tiny is a text encoder \(outputs: last_hidden_state \[batch, sequence, 16\]\)/u,
    ],
    ['crossEncoder', 'embed', /^embed-model: tiny is a sequence classifier \(outputs: logits \[batch, 1\]\)/u],
    ['dense', 'sparseEmbed', /^sparse-model: tiny is a text encoder/u],
    ['crossEncoder', 'multiVector', /^multi-model: tiny is a sequence classifier/u],
  ])('%s configured for %s is one line with task and outputs', async (kind, use, line) => {
    const problems = await problemsAfter(kind, use, () => Promise.resolve());
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(line);
  });

  it('a masked language model is no embedder', async () => {
    const problems = await problemsOf(readModelFolder(join(shippedModels, 'splade-tiny'), ['embed'], 'auto'));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain('is a masked language model');
  });

  it('an architecture that cannot be served is named', async () => {
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      editJson(join(folder, 'config.json'), { architectures: ['T5ForConditionalGeneration'] }),
    );
    expect(problems).toEqual([expect.stringContaining('"T5ForConditionalGeneration"')]);
  });

  it('a causal language model of which the catalogue says nothing is no reranker', async () => {
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      editJson(join(folder, 'config.json'), { architectures: ['Qwen3ForCausalLM'] }),
    );
    expect(problems).toEqual([expect.stringMatching(/^rerank-model: tiny is a causal language model/u)]);
  });

  it('two labels make no reranker where nobody says which of them means "relevant"', async () => {
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      editJson(join(folder, 'config.json'), { id2label: { 0: 'no', 1: 'yes' } }),
    );
    expect(problems[0]).toContain('has 2 labels, and which of them means "relevant" is not known');
  });

  it.each(['WordWeights', 'LSTM', 'Mystery'])('a module "%s" is named', async (name) => {
    const problems = await problemsAfter('dense', 'embed', async (folder) => {
      const path = join(folder, 'modules.json');
      const modules = JSON.parse(await readFile(path, 'utf8')) as unknown[];
      modules.splice(2, 0, { idx: 2, name: '2', path: '2_X', type: `sentence_transformers.models.${name}` });
      await writeFile(path, JSON.stringify(modules));
    });
    expect(problems).toEqual([expect.stringContaining(`"${name}"`)]);
  });

  it('a module behind the last one that is known is named too', async () => {
    const problems = await problemsAfter('dense', 'embed', async (folder) => {
      const path = join(folder, 'modules.json');
      const modules = JSON.parse(await readFile(path, 'utf8')) as unknown[];
      await writeFile(path, JSON.stringify([...modules, { path: '3_Mystery', type: 'x.Mystery' }]));
    });
    expect(problems).toEqual([expect.stringContaining('"Mystery"')]);
  });

  it('a pooling that nobody knows is named', async () => {
    const problems = await problemsAfter('dense', 'embed', (folder) =>
      editJson(join(folder, '1_Pooling/config.json'), { pooling_mode: ['mean', 'median'] }),
    );
    expect(problems[0]).toContain('pooling "mean + median" is not supported');
  });

  it('an encoder without a pooling is not guessed at', async () => {
    const problems = await problemsAfter('dense', 'embed', (folder) => rm(join(folder, 'modules.json')));
    expect(problems).toEqual([expect.stringContaining('names no Pooling module')]);
  });

  it('a forced precision that no file can give is refused with the files that are there', async () => {
    const problems = await problemsAfter(
      'crossEncoder',
      'rerank',
      (folder) => rename(join(folder, 'onnx/model.onnx'), join(folder, 'onnx/model_q4.onnx')),
      'int8',
    );
    expect(problems[0]).toContain('onnx/model_q4.onnx');
  });

  it('a graph file that was cut off is named with its size', async () => {
    const problems = await problemsAfter('crossEncoder', 'rerank', async (folder) => {
      const path = join(folder, 'onnx/model.onnx');
      await truncate(path, (await readFile(path)).byteLength - 1000);
    });
    expect(problems[0]).toMatch(/model\.onnx: is no complete ONNX model \(\d+ bytes\)/u);
  });

  it('a graph file other than the catalogue knows is named with both hashes and sizes', async () => {
    const sha256 = 'a'.repeat(64);
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      writeFile(
        join(dirname(folder), 'catalog.json'),
        JSON.stringify({ tiny: { graphFiles: { 'onnx/model.onnx': { sha256, bytes: 7 } } } }),
      ),
    );
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(
      /onnx\/model\.onnx: expected sha256 a{64} \(7 bytes\), found [0-9a-f]{64} \(\d+ bytes\)/u,
    );
  });

  it('an input that nobody feeds is named', async () => {
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      appendToGraph(folder, { graph: { input: [{ name: 'foo', type: { tensorType: { elemType: 7 } } }] } }),
    );
    expect(problems).toEqual([expect.stringContaining('inputs that are not known: foo')]);
  });

  it('weights in another file are named', async () => {
    const externalData = [{ key: 'location', value: 'model.onnx_data' }];
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      appendToGraph(folder, { graph: { initializer: [{ name: 'far', dataLocation: 1, externalData }] } }),
    );
    expect(problems).toEqual([expect.stringContaining('model.onnx_data')]);
  });

  it('a hidden size other than the output has is refused', async () => {
    const problems = await problemsAfter('dense', 'embed', (folder) =>
      editJson(join(folder, 'config.json'), { hidden_size: 32 }),
    );
    expect(problems).toEqual([expect.stringContaining('last_hidden_state [batch, sequence, 16] should be [')]);
  });

  it('every unreadable file is named at once', async () => {
    const problems = await problemsAfter('dense', 'embed', async (folder) => {
      await rename(join(folder, 'config.json'), join(folder, 'config.json.old'));
      await writeFile(join(folder, 'modules.json'), '{');
      await mkdir(join(folder, 'extra'));
    });
    expect(problems.map((problem) => problem.split('/').at(-1))).toEqual([
      'config.json: is missing',
      'modules.json: is not JSON',
    ]);
  });

  it('a self-check file that the catalogue promises must be there', async () => {
    const problems = await problemsAfter('crossEncoder', 'rerank', (folder) =>
      writeFile(join(dirname(folder), 'catalog.json'), JSON.stringify({ tiny: { selfCheckFile: 'checks.json' } })),
    );
    expect(problems).toEqual([expect.stringContaining('checks.json: is missing')]);
  });
});

describe('prompts', () => {
  it('each kind takes the prompt of exactly its name, as in the reference, which adds empty ones to the file', () => {
    expect(choosePrompts(null)).toEqual({ query: '', document: '', unspecified: '' });
    const prompts = { query: 'q: ', passage: 'p: ', corpus: 'c: ' };
    expect(choosePrompts({ prompts })).toEqual({ query: 'q: ', document: '', unspecified: '' });
    expect(choosePrompts({ prompts: { ...prompts, document: 'd: ' } }).document).toBe('d: ');
    expect(choosePrompts({ prompts: { query: null } }).query).toBe('');
  });

  it('the default one is that of texts without a kind, and of no others', () => {
    const withDefault = { prompts: { all: 'a: ', document: 'd: ' }, default_prompt_name: 'all' };
    expect(choosePrompts(withDefault)).toEqual({ query: '', document: 'd: ', unspecified: 'a: ' });
  });
});

describe('named prompts', () => {
  const namedOf = (prompts: unknown, catalog: unknown = {}) =>
    withFolder(async (parent) => {
      const folder = join(parent, 'tiny');
      await writeTinyModel('dense', folder);
      await writeFile(join(folder, 'config_sentence_transformers.json'), JSON.stringify({ prompts }));
      await writeFile(join(parent, 'catalog.json'), JSON.stringify({ tiny: catalog }));
      return (await readModelFolder(folder, ['embed'], 'auto')).namedPrompts;
    });

  it('are all of the file, empty ones among them, and those of the catalogue in their place', async () => {
    const prompts = { query: 'q: ', STS: '', 'Retrieval-query': 'find: ', none: null };
    expect(await namedOf(prompts)).toEqual({ ...prompts, none: '' });
    expect(await namedOf(null)).toEqual({});
    const catalog = { prompts: { query: 'of the catalogue: ', document: '', unspecified: 'u' } };
    expect(await namedOf({ query: 'q: ', STS: '' }, catalog)).toEqual({
      query: 'of the catalogue: ',
      document: '',
      STS: '',
    });
  });

  it.each([
    ['too many', Object.fromEntries(Array.from({ length: 1025 }, (_, index) => [`n${index}`, '']))],
    ['a name that is too long', { ['n'.repeat(257)]: '' }],
    ['one that is too long', { n: 'x'.repeat(65_537) }],
  ])('%s is a fault of the file', async (_, prompts) => {
    const problems = await problemsAfter('dense', 'embed', (folder) =>
      writeFile(join(folder, 'config_sentence_transformers.json'), JSON.stringify({ prompts })),
    );
    expect(problems).toEqual([expect.stringContaining('config_sentence_transformers.json: prompts')]);
  });
});

describe('pooling names', () => {
  it('both forms of the file are read', () => {
    expect(poolingNames({ pooling_mode: 'cls' })).toEqual(['cls']);
    expect(poolingNames({ pooling_mode_cls_token: true, pooling_mode_mean_tokens: true })).toEqual(['cls', 'mean']);
  });
});
