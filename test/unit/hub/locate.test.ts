/** Owns the rules of where a named model is found. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { thisCpu } from '../../../src/model/graph-variant.ts';
import { createLocator } from '../../../src/model/hub/locate.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { resolveModels } from '../../../src/model/registry.ts';
import { fileOf, misbehave } from '../../support/fake-hub.ts';
import { settings } from '../model/model-folders.ts';
import { pathsIn, refusalOf, withRig } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);
const placeOf = (folder: string) => ({ folder, graphFolder: folder, repository: tinyId });

describe('a model named on the hub', () => {
  it('is downloaded once for all uses and known by its name', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto', device: thisCpu });
      const names = settings(folder, { embedModel: [tinyId], multiModel: [`${tinyId}@main`] });
      const served = await resolveModels(names, locate);
      expect(served.all.map(({ modelId }) => modelId)).toEqual([tinyId]);
      expect(served.embed).toEqual(served.multiVector);
      expect(fake.asked('/revision/main')).toHaveLength(1);
    });
  });

  it('that is complete in the cache is served without a request, at the commit that was recorded', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const files = await tinyRepository();
      fake.put(tinyId, files);
      const { folder } = await pullModel(hub, tiny, 'auto');
      fake.put(tinyId, { ...files, 'tokenizer_config.json': fileOf('{}') });
      const asked = fake.requests.length;
      for (const isOffline of [false, true]) {
        expect(await createLocator({ hub, isOffline, wanted: 'auto', device: thisCpu })(tinyId)).toEqual(
          placeOf(folder),
        );
      }
      expect(fake.requests).toHaveLength(asked);
    });
  });

  it('that lacks a file is completed at the commit that was recorded, not at a newer one', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const files = await tinyRepository();
      fake.put(tinyId, files);
      const { folder } = await pullModel(hub, tiny, 'auto');
      fake.put(tinyId, { ...files, 'tokenizer_config.json': fileOf('{}') });
      await rm(join(folder, graphPath));
      expect(await createLocator({ hub, isOffline: false, wanted: 'auto', device: thisCpu })(tinyId)).toEqual(
        placeOf(folder),
      );
    });
  });

  it('offline, one that is not in the cache is one clear problem and no request', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      const locate = createLocator({ hub, isOffline: true, wanted: 'auto', device: thisCpu });
      const problem = await refusalOf(locate(tinyId));
      expect(problem).toContain(`${tinyId} is not in the cache`);
      expect(problem).toContain(`trivec models pull ${tinyId}`);
      const refusal = await refusalOf(resolveModels(settings(folder, { embedModel: [tinyId] }), locate));
      expect(refusal).toMatch(/^embed-model: there is no model folder .*, and on the hub: /u);
      expect(fake.requests).toEqual([]);
    });
  });

  it('offline, one in the cache without the wanted weights is refused by what it lacks', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const { [graphPath]: graph = fileOf(''), ...files } = await tinyRepository();
      fake.put(tinyId, { ...files, 'onnx/model_int8.onnx': graph });
      await pullModel(hub, tiny, 'auto');
      const problem = await refusalOf(createLocator({ hub, isOffline: true, wanted: 'fp32', device: thisCpu })(tinyId));
      expect(problem).toContain('lacks a graph file: it has no fp32 or fp16 graph file to serve fp32 from');
    });
  });

  it('is converted from what the cache has only where the hub has nothing better, or does not answer', async () => {
    await withRig({ limits: { maxAttempts: 2 } }, async ({ fake, hub, notes }) => {
      fake.put(tinyId, { ...(await tinyRepository()), 'onnx/model_int8.onnx': fileOf('int8') });
      const { folder } = await pullModel(hub, tiny, 'fp32');
      const locate = (isOffline: boolean) => createLocator({ hub, isOffline, wanted: 'int8', device: thisCpu })(tinyId);
      const asked = fake.requests.length;
      expect(await locate(true)).toEqual(placeOf(folder));
      expect(fake.requests).toHaveLength(asked);
      fake.always('onnx/model_int8.onnx', misbehave.status(500));
      expect(await locate(false)).toEqual(placeOf(folder));
      expect(notes.at(-1)).toContain('the cache is used');
      expect(await pathsIn(join(folder, 'onnx'))).toEqual(['model.onnx']);
    });
  });

  it('gets its shipped weights before any are converted', async () => {
    await withRig({}, async ({ fake, hub }) => {
      const { [graphPath]: graph = fileOf(''), ...files } = await tinyRepository();
      fake.put(tinyId, { ...files, [graphPath]: graph, 'onnx/model_int8.onnx': graph });
      const { folder } = await pullModel(hub, tiny, 'fp32');
      await createLocator({ hub, isOffline: false, wanted: 'int8', device: thisCpu })(tinyId);
      expect(await pathsIn(join(folder, 'onnx'))).toEqual(['model.onnx', 'model_int8.onnx']);
    });
  });

  it('takes its graphs from the repository that the catalogue names, where its own has none', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      const [id, graphs] = ['jinaai/jina-embeddings-v2-base-en', 'Xenova/jina-embeddings-v2-base-en'];
      const { [graphPath]: graph = fileOf(''), ...files } = await tinyRepository();
      fake.put(id, files);
      fake.put(graphs, { [graphPath]: graph, 'config.json': fileOf('{}') });
      const names = settings(folder, { embedModel: [id] });
      const locate = (isOffline: boolean) => createLocator({ hub, isOffline, wanted: 'auto', device: thisCpu });
      for (const isOffline of [false, true]) {
        const [model] = (await resolveModels(names, locate(isOffline))).embed;
        expect(model).toMatchObject({ modelId: id, pooling: 'mean' });
        expect(model?.graphPath).toContain('models--Xenova--jina-embeddings-v2-base-en');
      }
      expect(
        fake.requests.some(({ target }) => target.includes(`${graphs}/resolve`) && target.includes('config')),
      ).toBe(false);
    });
  });

  it('that is also a folder is the folder', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      await pullModel(hub, tiny, 'auto');
      const asked = fake.requests.length;
      const { writeTinyModel } = await import('../../support/tiny-models.ts');
      await writeTinyModel('dense', join(folder, tinyId));
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto', device: thisCpu });
      const served = await resolveModels(settings(folder, { embedModel: [tinyId] }), locate);
      expect(served.embed[0]?.folder).toBe(join(folder, tinyId));
      expect(fake.requests).toHaveLength(asked);
    });
  });

  it('a setting that is no such name is left to others', async () => {
    await withRig({}, async ({ hub }) => {
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto', device: thisCpu });
      expect(await locate('missing')).toBeNull();
      expect(await locate('../etc/passwd')).toBeNull();
    });
  });
});
