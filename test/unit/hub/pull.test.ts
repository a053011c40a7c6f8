/** Owns the rules of what a pull leaves in the cache. */
import { lstat, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listSnapshots } from '../../../src/model/hub/cache.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import { fileOf, misbehave } from '../../support/fake-hub.ts';
import { pathsIn, refusalOf, withRig } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);
const repositoryFolder = 'models--tiny-org--tiny.model-1';

describe('a pull', () => {
  it('leaves the layout that all tools share: blobs by hash, a snapshot of links, the commit of the branch', async () => {
    await withRig({}, async ({ fake, hub, cacheDir }) => {
      const commit = fake.put(tinyId, await tinyRepository());
      const { folder } = await pullModel(hub, tiny, 'auto');
      expect(folder).toBe(join(cacheDir, repositoryFolder, 'snapshots', commit));
      expect(await readFile(join(cacheDir, repositoryFolder, 'refs/main'), 'utf8')).toBe(commit);
      expect(await readlink(join(folder, graphPath))).toMatch(/^\.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{64}$/u);
      expect(await readlink(join(folder, '1_Pooling/config.json'))).toMatch(/^\.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/u);
      expect((await lstat(join(folder, 'config.json'))).isSymbolicLink()).toBe(true);
      expect(await listSnapshots(cacheDir)).toEqual([{ id: tinyId, commit, revisions: ['main'], folder }]);
    });
  });

  it('gets what a server needs, and neither pickles, code nor weights of other formats', async () => {
    await withRig({}, async ({ fake, hub }) => {
      fake.put(tinyId, await tinyRepository());
      const { folder } = await pullModel(hub, tiny, 'auto');
      expect(await pathsIn(folder)).toEqual([
        '1_Pooling/config.json',
        'config.json',
        'modules.json',
        'onnx/model.onnx',
        'tokenizer.json',
        'tokenizer_config.json',
      ]);
    });
  });

  it('gives a folder that the model readers accept', async () => {
    await withRig({}, async ({ fake, hub }) => {
      fake.put(tinyId, await tinyRepository());
      const { folder } = await pullModel(hub, tiny, 'auto');
      const model = await readModelFolder(folder, ['embed'], 'auto', { modelId: tinyId });
      expect(model).toMatchObject({ modelId: tinyId, pooling: 'mean', precision: 'fp32' });
    });
  });

  it('downloads nothing twice, and resolves the branch anew', async () => {
    await withRig({}, async ({ fake, hub, cacheDir }) => {
      const files = await tinyRepository();
      const old = fake.put(tinyId, files);
      await pullModel(hub, tiny, 'auto');
      const changed = fake.put(tinyId, { ...files, 'tokenizer_config.json': fileOf('{"model_max_length":8}') });
      const { commit } = await pullModel(hub, tiny, 'auto');
      expect(commit).toBe(changed);
      expect(fake.asked('model.onnx')).toHaveLength(1);
      expect(fake.asked('tokenizer_config.json')).toHaveLength(2);
      const snapshots = await listSnapshots(cacheDir);
      expect(snapshots.map((snapshot) => [snapshot.commit, snapshot.revisions])).toEqual(
        [[changed, ['main']] as const, [old, []] as const].sort(([a], [b]) => a.localeCompare(b)),
      );
    });
  });

  it('a commit is not resolved and no branch is recorded', async () => {
    await withRig({}, async ({ fake, hub, cacheDir }) => {
      const commit = fake.put(tinyId, await tinyRepository());
      await pullModel(hub, requireRepository(`${tinyId}@${commit}`), 'auto');
      expect(fake.requests.some(({ target }) => target.includes('/revision/'))).toBe(false);
      expect((await pathsIn(join(cacheDir, repositoryFolder))).some((path) => path.startsWith('refs/'))).toBe(false);
    });
  });

  it('a file that was damaged in the cache is found by its hash and got again', async () => {
    await withRig({}, async ({ fake, hub }) => {
      fake.put(tinyId, await tinyRepository());
      const { folder } = await pullModel(hub, tiny, 'auto');
      const whole = await readFile(join(folder, graphPath));
      await writeFile(join(folder, graphPath), Buffer.from(whole).fill(7, 100, 110));
      await pullModel(hub, tiny, 'auto');
      expect(await readFile(join(folder, graphPath))).toEqual(whole);
    });
  });

  it('nothing looks complete before everything is: no snapshot, no branch', async () => {
    await withRig({ limits: { maxAttempts: 2 } }, async ({ fake, hub, cacheDir }) => {
      fake.put(tinyId, await tinyRepository());
      fake.always(graphPath, misbehave.status(500));
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toContain('onnx/model.onnx: ');
      const left = await pathsIn(cacheDir);
      expect(left.filter((path) => /snapshots|refs|lock|tmp/u.test(path))).toEqual([]);
      expect(left.length).toBeGreaterThan(0);
    });
  });

  it('a precision that the repository lacks is refused with what there is', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const { [graphPath]: graph = fileOf(''), ...files } = await tinyRepository();
      fake.put(tinyId, { ...files, 'onnx/model_int8.onnx': graph });
      const refusal = await refusalOf(pullModel(hub, tiny, 'fp16'));
      expect(refusal).toContain('has no fp16 or fp32 graph file to serve fp16 from');
      expect(refusal).toContain('its ONNX files are onnx/model_int8.onnx');
      expect(fake.requests.some(({ target }) => target.includes('/resolve/'))).toBe(false);
    });
  });

  it('weight files beside the graph come with it and are linked before it', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const weights = {
        'onnx/model.onnx_data': fileOf('w'.repeat(5000)),
        'onnx/model.onnx_data_1': fileOf('v'.repeat(5000)),
      };
      fake.put(tinyId, { ...(await tinyRepository()), ...weights, 'onnx/model_O4.onnx': fileOf('no') });
      const { folder } = await pullModel(hub, tiny, 'auto');
      expect((await pathsIn(join(folder, 'onnx'))).sort()).toEqual([
        'model.onnx',
        'model.onnx_data',
        'model.onnx_data_1',
      ]);
    });
  });

  it('a listing that leads out of the repository is refused before anything is written', async () => {
    await withRig({}, async ({ fake, hub, cacheDir, folder }) => {
      fake.put(tinyId, { ...(await tinyRepository()), '../../../../escaped.json': fileOf('{}') });
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toContain('leads out of it');
      expect(await pathsIn(cacheDir)).toEqual([]);
      expect(await pathsIn(folder)).toEqual([]);
    });
  });

  it('a cache that cannot be written is one clear problem', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      await writeFile(join(folder, 'taken'), '');
      const refusal = await refusalOf(pullModel({ ...hub, cacheDir: join(folder, 'taken') }, tiny, 'auto'));
      expect(refusal).toContain('set HF_HUB_CACHE');
    });
  });
});
