/** Owns the rules of how a model in the layout of the hub's cache, all of it links, becomes a prepared graph. */
import { readlink, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InferenceSession } from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { thisCpu } from '../../../src/model/graph-variant.ts';
import { createLocator } from '../../../src/model/hub/locate.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { resolveModels } from '../../../src/model/registry.ts';
import { fileOf, filesIn } from '../../support/fake-hub.ts';
import { settings } from '../model/model-folders.ts';
import { pathsIn, withRig } from './rig.ts';

const goldenModels = fileURLToPath(new URL('../../golden/tiny/models', import.meta.url));

describe('a model in the cache of the hub', () => {
  it('with weights beside its graph is prepared so that the engine opens it, though the cache holds links', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      const id = 'tiny-org/external';
      fake.put(id, await filesIn(join(goldenModels, 'variant-external-data')));
      const pulled = await pullModel(hub, requireRepository(id), 'auto');
      const weights = join(pulled.folder, 'onnx/model.onnx_data');
      expect(await readlink(weights)).toContain('blobs');
      const locate = createLocator({ hub, isOffline: true, wanted: 'auto', device: thisCpu });
      const served = await resolveModels(settings(folder, { embedModel: [id] }), locate);
      const cacheDir = join(folder, 'prepared');
      const [load] = await prepareModels(served.all, cacheDir);
      const session = await InferenceSession.create(load?.graphPath ?? '');
      expect(session.outputNames).toContain('trivec_dense');
      const companion = (await pathsIn(dirname(load?.graphPath ?? ''))).find((path) => path.endsWith('.data')) ?? '';
      expect((await stat(join(cacheDir, companion))).ino).toBe((await stat(weights)).ino);
    });
  });

  it('is pulled with the layers that its three heads need, and serves them as one model', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      const id = 'tiny-org/three-heads';
      fake.put(id, await filesIn(join(goldenModels, 'bge-m3')));
      await pullModel(hub, requireRepository(id), 'auto');
      const locate = createLocator({ hub, isOffline: true, wanted: 'auto', device: thisCpu });
      const names = settings(folder, { embedModel: [id], sparseModel: [id], multiModel: [id] });
      const { all } = await resolveModels(names, locate);
      expect(all.map(({ heads }) => heads)).toEqual([['dense', 'sparse', 'rows', 'maxSim']]);
    });
  });

  it.each([
    ['colbert-original', 'multiModel'],
    ['colbert-pylate', 'multiModel'],
    ['sparse-inference-free', 'sparseModel'],
    ['bert-linear', 'embedModel'],
  ] as const)('%s is pulled whole: what it was made of is enough to serve it', async (name, key) => {
    await withRig({}, async ({ fake, hub, folder }) => {
      const id = `tiny-org/${name}`;
      fake.put(id, await filesIn(join(goldenModels, name)));
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto', device: thisCpu });
      const { all } = await resolveModels(settings(folder, { [key]: [id] }), locate);
      expect(await prepareModels(all, join(folder, 'prepared'))).toMatchObject([{ modelId: id }]);
    });
  });

  it('gets the whole weights of an original ColBERT only where its graph ends before the layer', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const files = await filesIn(join(goldenModels, 'colbert-original'));
      const has = async (id: string): Promise<boolean> => {
        const { folder } = await pullModel(hub, requireRepository(id), 'auto');
        return (await pathsIn(folder)).includes('model.safetensors');
      };
      const { 'onnx/model.onnx': graph = fileOf('') } = await filesIn(join(goldenModels, 'bert-linear'));
      fake.put('tiny-org/plain', { ...files, 'onnx/model.onnx': graph, 'model.safetensors': fileOf('weights') });
      expect(await has('tiny-org/plain')).toBe(true);
      const config = JSON.stringify({ architectures: ['HF_ColBERT'], hidden_size: 99, vocab_size: 341 });
      fake.put('tiny-org/complete', {
        ...files,
        'onnx/model.onnx': graph,
        'config.json': fileOf(config),
        'model.safetensors': fileOf('weights'),
      });
      expect(await has('tiny-org/complete')).toBe(false);
    });
  });
});
