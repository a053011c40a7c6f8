/** Owns the rules of the catalogue. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  bundledCatalogPath,
  catalogSchema,
  findCatalogEntry,
  plainEntry,
  readCatalogEntry,
  repositoryOf,
} from '../../../src/model/catalog.ts';
import { punctuation } from '../../../src/model/token-row-rules.ts';
import { problemsOf, withFolder } from './model-folders.ts';

const bundled = JSON.parse(await readFile(bundledCatalogPath, 'utf8')) as Record<string, unknown>;

describe('the bundled catalogue', () => {
  it('has the form that the server reads', () => {
    expect(catalogSchema.safeParse(bundled).error).toBeUndefined();
  });

  it('lists repositories by their id, and the shipped folders by their name', () => {
    const names = Object.keys(bundled);
    expect(names.filter((name) => !/^[\w.-]+\/[\w.-]+$/u.test(name))).toEqual(['all-MiniLM-L6-v2', 'splade-tiny']);
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
  });

  it('knows every kind of model', async () => {
    expect(await findCatalogEntry('BAAI/bge-base-en-v1.5')).toMatchObject({ pooling: ['cls'] });
    expect(await findCatalogEntry('intfloat/e5-base-v2')).toMatchObject({
      prompts: { query: 'query: ', document: 'passage: ' },
    });
    expect(await findCatalogEntry('nomic-ai/nomic-embed-text-v1.5')).toMatchObject({ isCenteredBeforeCut: true });
    expect(await findCatalogEntry('answerdotai/answerai-colbert-small-v1')).toMatchObject({
      graphPath: 'vespa_colbert.onnx',
    });
    expect((await findCatalogEntry('Qwen/Qwen3-Reranker-0.6B'))?.yesNo?.body).toContain('{query}');
  });

  it('puts every place of a yes-or-no text exactly once', async () => {
    const { body } = (await findCatalogEntry('Qwen/Qwen3-Reranker-0.6B'))?.yesNo ?? { body: '' };
    expect(body.match(/\{\w+\}/gu)?.sort()).toEqual(['{document}', '{instruction}', '{query}']);
  });
});

describe('an entry', () => {
  it('is found whatever the upper and lower case of the id', async () => {
    expect(await findCatalogEntry('snowflake/SNOWFLAKE-arctic-embed-m')).not.toBeNull();
    expect(await findCatalogEntry('nobody/nothing')).toBeNull();
  });

  it('may name the punctuation instead of listing it', async () => {
    expect((await findCatalogEntry('all-MiniLM-L6-v2'))?.documentSkipTokens).toEqual(punctuation);
    expect(punctuation).toHaveLength(32);
  });

  it('beside the folder goes before the bundled one', async () => {
    await withFolder(async (parent) => {
      const folder = join(parent, 'bge-m3');
      await writeFile(join(parent, 'catalog.json'), JSON.stringify({ 'bge-m3': { maxTokens: 7 } }));
      expect((await readCatalogEntry(folder, 'BAAI/bge-m3')).maxTokens).toBe(7);
      expect(await readCatalogEntry(join(parent, 'other'), 'BAAI/bge-m3')).toMatchObject({ pooling: ['cls'] });
      expect(await readCatalogEntry(join(parent, 'other'), 'nobody/nothing')).toEqual(plainEntry);
    });
  });

  it('with a member that nobody knows is refused with its path', async () => {
    await withFolder(async (parent) => {
      await writeFile(join(parent, 'catalog.json'), JSON.stringify({ tiny: { poolings: ['cls'] } }));
      const problems = await problemsOf(readCatalogEntry(join(parent, 'tiny')));
      expect(problems[0]).toMatch(/catalog\.json: tiny: .*poolings/u);
    });
  });
});

describe('the repository of a folder', () => {
  it.each([
    ['/cache/hub/models--BAAI--bge-m3/snapshots/0123abc', 'BAAI/bge-m3'],
    [
      '/cache/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/0',
      'sentence-transformers/all-MiniLM-L6-v2',
    ],
    ['/data/BAAI/bge-m3', 'BAAI/bge-m3'],
  ])('%s is %s', (folder, repository) => {
    expect(repositoryOf(folder)).toBe(repository);
  });
});
