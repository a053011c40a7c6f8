/** Owns the proof that the shipped models give what their self-checks expect. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { headOutputs } from '../../../src/executor/protocol.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import type { SelfCheck } from '../../../src/model/manifest.ts';
import type { ModelUse } from '../../../src/model/role.ts';
import { cosine, intTensor, runModel } from '../kernels/run-onnx.ts';
import { shippedModels, withFolder } from './model-folders.ts';

/** The expected values at full length: terms that are not listed are zero. */
function expectedValues({ values, indices }: SelfCheck['expected'], length: number): readonly number[] {
  if (indices === null) return values;
  const full = Array.from({ length }, () => 0);
  indices.forEach((term, index) => (full[term] = values[index] ?? 0));
  return full;
}

describe('self-checks of the shipped models', () => {
  it.each<[string, ModelUse[], number]>([
    ['all-MiniLM-L6-v2', ['embed', 'multiVector'], 2],
    ['splade-tiny', ['sparseEmbed'], 1],
  ])('%s at int8 gives what the reference implementation gave', async (name, uses, checks) => {
    await withFolder(async (cacheDir) => {
      const model = await readModelFolder(join(shippedModels, name), uses, 'int8');
      const [load] = await prepareModels([model], cacheDir);
      expect(model.selfChecks).toHaveLength(checks);
      for (const { head, ids, expected, minCosine } of model.selfChecks) {
        const feeds = { input_ids: intTensor([ids]), token_type_ids: intTensor([ids.map(() => 0)]) };
        const found =
          (await runModel(load?.graphPath ?? '', feeds, [headOutputs[head]]))[headOutputs[head]]?.values ?? [];
        const wanted = expectedValues(expected, model.vocabularySize);
        expect(found).toHaveLength(wanted.length);
        expect(cosine(found, wanted)).toBeGreaterThanOrEqual(minCosine.int8);
      }
    });
  });
});
