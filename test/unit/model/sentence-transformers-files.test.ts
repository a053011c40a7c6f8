/** Owns what folders that sentence-transformers 6 writes mean: late interaction, sparse vectors, Routers. */
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import { readTokenMask } from '../../../src/model/token-mask.ts';
import { goldenFolder } from './golden-models.ts';
import { editJson, problemsOf, withFolder } from './model-folders.ts';

interface Files {
  readonly encoder?: object;
  /** null: no such module. */
  readonly mask?: object | null;
  readonly sentence?: object;
  /** Limit of the tokenizer. */
  readonly tokenizerTokens?: number;
}

const package62 = 'sentence_transformers.base.modules';

/** A late-interaction folder as sentence-transformers 6.2 writes it, around the graph of a golden model. */
async function writeNative(folder: string, { encoder, mask = {}, sentence, tokenizerTokens = 48 }: Files) {
  await cp(goldenFolder('colbert-pylate'), folder, { recursive: true });
  const modules = [
    { path: '', type: `${package62}.transformer.Transformer` },
    { path: '1_Dense', type: `${package62}.dense.Dense` },
    {
      path: '2_MultiVectorMask',
      type: 'sentence_transformers.multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask',
    },
    { path: '3_Normalize', type: `${package62}.normalize.Normalize` },
  ];
  await mkdir(join(folder, '2_MultiVectorMask'));
  await writeFile(join(folder, '2_MultiVectorMask/config.json'), JSON.stringify(mask ?? {}));
  await writeFile(join(folder, 'sentence_bert_config.json'), JSON.stringify({ transformer_task: 'x', ...encoder }));
  const kept = mask === null ? modules.filter(({ path }) => path !== '2_MultiVectorMask') : modules;
  await writeFile(join(folder, 'modules.json'), JSON.stringify(kept));
  const prompts = { query: '[Q] ', document: '[D] ' };
  const config = { model_type: 'MultiVectorEncoder', prompts, similarity_fn_name: 'maxsim', ...sentence };
  await writeFile(join(folder, 'config_sentence_transformers.json'), JSON.stringify(config));
  await editJson(join(folder, 'tokenizer_config.json'), { model_max_length: tokenizerTokens });
}

const read = (folder: string) => readModelFolder(folder, ['multiVector'], 'fp32');

const readNative = (files: Files): Promise<ModelManifest> =>
  withFolder(async (parent) => {
    await writeNative(join(parent, 'native'), files);
    return read(join(parent, 'native'));
  });

const problemsOfNative = (files: Files): Promise<readonly string[]> => problemsOf(readNative(files));

const fixed = { strategy: 'fixed', attend: false, token: null, length: 12 };

describe("late interaction in sentence-transformers' own form", () => {
  it('has its markers as prompts, its lengths and filling in the encoder file, its skip list in the mask', async () => {
    const manifest = await readNative({
      encoder: { document_length: 20, query_expansion: fixed },
      mask: { skiplist_words: [','], skiplist_tasks: ['document'], keep_only_token_ids: null },
    });
    expect(manifest.prompts).toMatchObject({ query: '[Q] ', document: '[D] ' });
    expect(manifest.maxTokens).toBe(20);
    expect(manifest.tokenRows).toEqual({
      documentSkipTokens: [','],
      querySkipTokens: [],
      queryMarker: null,
      documentMarker: null,
      maxQueryTokens: 12,
      maxDocumentTokens: 20,
      minQueryTokens: null,
      expansionToken: '[MASK]',
      isExpansionAttended: false,
      keepsFirstRow: true,
      isMaxSimAveraged: false,
    });
  });

  it('of which nothing is stated has a row for every token, and the limit of its tokenizer', async () => {
    const { maxTokens, tokenRows } = await readNative({});
    expect(maxTokens).toBe(48);
    expect(tokenRows).toMatchObject({
      documentSkipTokens: [],
      maxQueryTokens: null,
      maxDocumentTokens: null,
      expansionToken: null,
    });
  });

  it('with a length for one kind of text leaves the other the limit of its tokenizer', async () => {
    const document = await readNative({ encoder: { document_length: 60 } });
    expect(document).toMatchObject({ maxTokens: 60, tokenRows: { maxQueryTokens: 48, maxDocumentTokens: 60 } });
    const query = await readNative({ encoder: { query_length: 60 } });
    expect(query).toMatchObject({ maxTokens: 60, tokenRows: { maxQueryTokens: 60, maxDocumentTokens: 48 } });
  });

  it('fills queries without cutting them at that length where its strategy is "min"', async () => {
    const least = { strategy: 'min', attend: true, token: '[SEP]', length: 12 };
    const filling = { minQueryTokens: 12, expansionToken: '[SEP]', isExpansionAttended: true };
    const free = await readNative({ encoder: { query_expansion: least } });
    expect(free.tokenRows).toMatchObject({ ...filling, maxQueryTokens: 48 });
    const bounded = await readNative({ encoder: { query_length: 16, query_expansion: least } });
    expect(bounded.tokenRows).toMatchObject({ ...filling, maxQueryTokens: 16 });
  });

  it('averages MaxSim where its similarity is meanmaxsim', async () => {
    const { tokenRows } = await readNative({ sentence: { similarity_fn_name: 'meanmaxsim' } });
    expect(tokenRows.isMaxSimAveraged).toBe(true);
  });

  it('without a word on its kind is told by the mask', async () => {
    const { tokenRows } = await readNative({ sentence: { model_type: null }, encoder: { query_expansion: fixed } });
    expect(tokenRows).toMatchObject({ queryMarker: null, maxQueryTokens: 12 });
  });

  it.each([
    [
      'a filling that is longer than queries may be',
      { encoder: { query_length: 8, query_expansion: fixed } },
      'query_length is less',
    ],
    ['a filling without a mask', { mask: null, encoder: { query_expansion: fixed } }, 'without a MultiVectorMask'],
    ['a strategy that nobody knows', { encoder: { query_expansion: { ...fixed, strategy: 'max' } } }, 'strategy'],
    ['documents that keep some tokens only', { mask: { keep_only_token_ids: [7] } }, 'keep_only_token_ids'],
  ])('is refused with %s', async (_, files, problem) => {
    expect(await problemsOfNative(files)).toEqual([expect.stringContaining(problem)]);
  });

  it('is refused where nothing could fill queries', async () => {
    const problems = await withFolder(async (parent) => {
      const folder = join(parent, 'native');
      await writeNative(folder, { encoder: { query_expansion: fixed } });
      await editJson(join(folder, 'tokenizer_config.json'), { mask_token: null, eos_token: null });
      return problemsOf(read(folder));
    });
    expect(problems).toEqual([expect.stringContaining('neither a mask nor a closing token')]);
  });
});

describe('a mask', () => {
  it.each([
    [{}, { skipTokens: [], skipsInQueries: false, skipsInDocuments: true }],
    [
      { skiplist_words: ['a'], skiplist_tasks: 'query' },
      { skipTokens: ['a'], skipsInQueries: true, skipsInDocuments: false },
    ],
    [
      { skiplist_words: ['a'], skiplist_tasks: ['query', 'document'] },
      { skipTokens: ['a'], skipsInQueries: true, skipsInDocuments: true },
    ],
  ])('of %j is of documents unless it says of what', async (file, expected) => {
    await withFolder(async (folder) => {
      await writeFile(join(folder, 'config.json'), JSON.stringify(file));
      expect(await readTokenMask(folder)).toEqual(expected);
    });
  });

  it("goes before PyLate's skip list", async () => {
    const { tokenRows } = await readNative({
      mask: { skiplist_words: [','] },
      sentence: { model_type: 'ColBERT', query_prefix: '[Q] ', skiplist_words: ['!'] },
    });
    expect(tokenRows).toMatchObject({ queryMarker: '[Q] ', documentSkipTokens: [','] });
  });

  it('before a pooling is refused', async () => {
    const problems = await withFolder(async (parent) => {
      const folder = join(parent, 'native');
      await writeNative(folder, {});
      const types = ['Transformer', 'MultiVectorMask', 'Pooling'];
      await writeFile(join(folder, 'modules.json'), JSON.stringify(types.map((type) => ({ path: '', type }))));
      return problemsOf(read(folder));
    });
    expect(problems).toEqual([expect.stringContaining('"Pooling" is not supported in this place')]);
  });
});

describe('a sparse model', () => {
  const readSparse = (change: (folder: string) => Promise<unknown>) =>
    withFolder(async (parent) => {
      const folder = join(parent, 'sparse');
      await cp(goldenFolder('sparse-inference-free'), folder, { recursive: true });
      await change(folder);
      return readModelFolder(folder, ['sparseEmbed'], 'fp32');
    });
  const dims = (max_active_dims: unknown) => (folder: string) =>
    editJson(join(folder, 'config_sentence_transformers.json'), { max_active_dims });
  const limit = (model_max_length: number) => (folder: string) =>
    editJson(join(folder, 'query_0_SparseStaticEmbedding/tokenizer_config.json'), { model_max_length });

  it('keeps as many terms as max_active_dims says, else all', async () => {
    expect((await readSparse(dims(64))).sparse).toMatchObject({ maxTerms: 64 });
    expect((await readSparse(dims(null))).sparse).toMatchObject({ maxTerms: null });
    expect(await problemsOf(readSparse(dims(0)))).toEqual([expect.stringContaining('max_active_dims')]);
  });

  it.each(['query', 'document'])(
    'whose Router has no way for a %s is refused, and the missing kind is named',
    async (kind) => {
      const structure = {
        query: ['query_0_SparseStaticEmbedding'],
        document: ['document_0_MLMTransformer', 'document_1_SpladePooling'],
      };
      for (const modules of [undefined, []]) {
        const oneSided = (folder: string) =>
          editJson(join(folder, 'router_config.json'), { structure: { ...structure, [kind]: modules } });
        expect(await problemsOf(readSparse(oneSided))).toEqual([
          expect.stringContaining(`no module for ${kind} texts`),
        ]);
      }
    },
  );

  it('cuts queries that it looks up at the limit in the folder of their module, where that is believable', async () => {
    expect(await readSparse(limit(9))).toMatchObject({ maxTokens: 48, sparse: { maxQueryTokens: 9 } });
    expect((await readSparse(limit(1e30))).sparse).toMatchObject({ maxQueryTokens: null });
    const without = await readSparse((folder) =>
      rm(join(folder, 'query_0_SparseStaticEmbedding/tokenizer_config.json')),
    );
    expect(without.sparse).toMatchObject({ maxQueryTokens: null });
  });
});
