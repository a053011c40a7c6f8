/** Owns the rules of where a named model is found. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLocator } from '../../../src/model/hub/locate.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { resolveModels } from '../../../src/model/registry.ts';
import { fileOf } from '../../support/fake-hub.ts';
import { settings } from '../model/model-folders.ts';
import { refusalOf, withRig } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);

describe('a model named on the hub', () => {
  it('is downloaded once for all uses and known by its name', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto' });
      const names = settings(folder, { embedModel: tinyId, multiModel: `${tinyId}@main` });
      const served = await resolveModels(names, locate);
      expect(served.all.map(({ modelId }) => modelId)).toEqual([tinyId]);
      expect(served.embed).toBe(served.multiVector);
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
        expect(await createLocator({ hub, isOffline, wanted: 'auto' })(tinyId)).toBe(folder);
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
      expect(await createLocator({ hub, isOffline: false, wanted: 'auto' })(tinyId)).toBe(folder);
    });
  });

  it('offline, one that is not in the cache is one clear problem and no request', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      const locate = createLocator({ hub, isOffline: true, wanted: 'auto' });
      const problem = await refusalOf(locate(tinyId));
      expect(problem).toContain(`${tinyId} is not in the cache`);
      expect(problem).toContain(`trivec models pull ${tinyId}`);
      const refusal = await refusalOf(resolveModels(settings(folder, { embedModel: tinyId }), locate));
      expect(refusal).toMatch(/^embed-model: there is no model folder .*, and on the hub: /u);
      expect(fake.requests).toEqual([]);
    });
  });

  it('offline, one in the cache without the wanted weights is refused by what it lacks', async () => {
    await withRig({}, async ({ fake, hub }) => {
      fake.put(tinyId, await tinyRepository());
      await pullModel(hub, tiny, 'auto');
      const problem = await refusalOf(createLocator({ hub, isOffline: true, wanted: 'fp16' })(tinyId));
      expect(problem).toContain('lacks onnx/model_fp16.onnx');
    });
  });

  it('that is also a folder is the folder', async () => {
    await withRig({}, async ({ fake, hub, folder }) => {
      fake.put(tinyId, await tinyRepository());
      await pullModel(hub, tiny, 'auto');
      const asked = fake.requests.length;
      const { writeTinyModel } = await import('../../support/tiny-models.ts');
      await writeTinyModel('dense', join(folder, tinyId));
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto' });
      const served = await resolveModels(settings(folder, { embedModel: tinyId }), locate);
      expect(served.embed?.folder).toBe(join(folder, tinyId));
      expect(fake.requests).toHaveLength(asked);
    });
  });

  it('a setting that is no such name is left to others', async () => {
    await withRig({}, async ({ hub }) => {
      const locate = createLocator({ hub, isOffline: false, wanted: 'auto' });
      expect(await locate('missing')).toBeNull();
      expect(await locate('../etc/passwd')).toBeNull();
    });
  });
});
