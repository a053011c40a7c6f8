/** Owns the rules of prepared graphs. */
import { chmod, cp, mkdir, readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import type { ModelUse } from '../../../src/model/role.ts';
import { writeTinyModel } from '../../support/tiny-models.ts';
import type { TinyKindName } from '../../support/tiny-models.ts';
import { goldenFolder } from './golden-models.ts';
import { editJson, problemsOf, withFolder } from './model-folders.ts';

/** A tiny model and an empty cache beside it. */
async function withTinyModel(
  kind: TinyKindName,
  uses: readonly ModelUse[],
  test: (model: Awaited<ReturnType<typeof readModelFolder>>, cacheDir: string) => Promise<void>,
): Promise<void> {
  await withFolder(async (parent) => {
    await writeTinyModel(kind, join(parent, 'tiny'));
    await test(await readModelFolder(join(parent, 'tiny'), uses, 'auto'), join(parent, 'cache/deep'));
  });
}

describe('prepareModels', () => {
  it('every byte of the original stays in front of what is appended', async () => {
    await withTinyModel('dense', ['embed'], async (model, cacheDir) => {
      const [load] = await prepareModels([model], cacheDir);
      const original = await readFile(model.graphPath);
      const prepared = await readFile(load?.graphPath ?? '');
      expect(prepared.subarray(0, original.length).equals(original)).toBe(true);
      expect(prepared.length).toBeGreaterThan(original.length);
    });
  });

  it('the model folder is left as it was, and the cache holds nothing but the prepared graphs', async () => {
    await withTinyModel('dense', ['embed', 'multiVector'], async (model, cacheDir) => {
      const before = await readdir(model.folder, { recursive: true });
      const [load] = await prepareModels([model], cacheDir);
      expect(await readdir(model.folder, { recursive: true })).toEqual(before);
      expect((await readdir(cacheDir)).sort()).toEqual(
        [load?.graphPath, load?.maxSimGraphPath].map((path) => path?.slice(cacheDir.length + 1)).sort(),
      );
      expect(load?.graphPath.startsWith(join(cacheDir, `tiny-${model.revision}-`))).toBe(true);
    });
  });

  it('what an executor must know comes from the manifest', async () => {
    await withTinyModel('crossEncoder', ['rerank'], async (model, cacheDir) => {
      expect(await prepareModels([model], cacheDir)).toMatchObject([
        { modelId: 'tiny', heads: ['logit'], maxTokens: 64, precision: 'fp32', maxSimGraphPath: null },
      ]);
    });
  });

  it('a prepared graph is used again, without a write', async () => {
    await withTinyModel('dense', ['embed'], async (model, cacheDir) => {
      const [first] = await prepareModels([model], cacheDir);
      const before = await stat(first?.graphPath ?? '', { bigint: true });
      const [second] = await prepareModels([model], cacheDir);
      const after = await stat(second?.graphPath ?? '', { bigint: true });
      expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
    });
  });

  it('a prepared graph of the wrong size is replaced', async () => {
    await withTinyModel('dense', ['embed'], async (model, cacheDir) => {
      const [load] = await prepareModels([model], cacheDir);
      const path = load?.graphPath ?? '';
      const whole = await readFile(path);
      await truncate(path, 100);
      await prepareModels([model], cacheDir);
      expect((await readFile(path)).equals(whole)).toBe(true);
    });
  });

  it('other heads are another file', async () => {
    await withTinyModel('dense', ['embed'], async (model, cacheDir) => {
      const [dense] = await prepareModels([model], cacheDir);
      const [rows] = await prepareModels([{ ...model, heads: ['rows'] }], cacheDir);
      expect(rows?.graphPath).not.toBe(dense?.graphPath);
    });
  });

  it('many may prepare the same graph at once', async () => {
    await withTinyModel('dense', ['embed', 'multiVector'], async (model, cacheDir) => {
      const loads = await Promise.all(Array.from({ length: 12 }, () => prepareModels([model], cacheDir)));
      expect(new Set(loads.map(([load]) => load?.graphPath)).size).toBe(1);
      expect(await readdir(cacheDir)).toHaveLength(2);
    });
  });

  it('a model file that may only be read can be prepared', async () => {
    await withTinyModel('dense', ['embed'], async (model, cacheDir) => {
      await chmod(model.graphPath, 0o444);
      const [load] = await prepareModels([model], cacheDir);
      expect((await stat(load?.graphPath ?? '')).mode & 0o200).toBe(0o200);
    });
  });

  it('a cache folder that cannot be written is refused with the name of the setting', async () => {
    await withTinyModel('dense', ['embed', 'multiVector'], async (model, cacheDir) => {
      await mkdir(join(cacheDir, '..'), { recursive: true });
      await writeFile(cacheDir, 'a file where the folder should be');
      const problems = await problemsOf(prepareModels([model], cacheDir));
      expect(problems[0]).toMatch(/^cache-dir: .* cannot be written \((ENOTDIR|EEXIST)\)/u);
    });
  });

  it('a read-only cache that is complete is enough', async () => {
    await withTinyModel('dense', ['embed'], async (model, cacheDir) => {
      const loads = await prepareModels([model], cacheDir);
      await chmod(cacheDir, 0o555);
      try {
        expect(await prepareModels([model], cacheDir)).toEqual(loads);
      } finally {
        await chmod(cacheDir, 0o755);
      }
    });
  });
});

describe('a layer beside the graph', () => {
  const problemsWith = (name: string, use: ModelUse, spoil: (folder: string) => Promise<void>) =>
    withFolder(async (parent) => {
      const folder = join(parent, name);
      await cp(goldenFolder(name), folder, { recursive: true });
      await spoil(folder);
      const prepared = readModelFolder(folder, [use], 'fp32').then((model) =>
        prepareModels([model], join(parent, 'cache')),
      );
      return problemsOf(prepared);
    });

  it.each([
    ['colbert-pylate', 'multiVector', '1_Dense', { out_features: 12 }, '[8, 16], its layer states [12, 16]'],
    ['bert-linear', 'embed', '2_Dense', { out_features: 7 }, '[12, 16], its layer states [7, 16]'],
  ] as const)(
    'of %s (%s) whose weights have another width than %s says is refused with both',
    async (name, use, path, change, reason) => {
      const problems = await problemsWith(name, use, (folder) => editJson(join(folder, path, 'config.json'), change));
      expect(problems[0]).toContain(`${path}/model.safetensors: linear.weight has the shape ${reason}`);
    },
  );

  it.each([
    ['colbert-pylate', 'multiVector', '1_Dense'],
    ['bert-linear', 'embed', '2_Dense'],
    ['bert-layernorm', 'embed', '2_LayerNorm'],
  ] as const)('of %s (%s) whose file %s is missing is refused by its file', async (name, use, path) => {
    const problems = await problemsWith(name, use, (folder) => rm(join(folder, path, 'model.safetensors')));
    expect(problems[0]).toContain(`${path}/model.safetensors: `);
  });
});
