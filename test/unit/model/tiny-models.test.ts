/** Owns the check that the tiny models are what their hand computation says, prepared heads included. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer } from '@anush008/tokenizers';
import { beforeAll, describe, expect, it } from 'vitest';
import { lateInteractionReference } from '../../../src/kernels/late-interaction/reference.ts';
import { describeGraph } from '../../../src/kernels/onnx/read.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import type { ModelUse } from '../../../src/model/role.ts';
import { encodeTinyGraph } from '../../support/tiny-graph.ts';
import { tinyId, tinyWeightsOf, writeTinyModel } from '../../support/tiny-models.ts';
import type { TinyKindName } from '../../support/tiny-models.ts';
import { tinyDense, tinyHiddenState, tinyLogits } from '../../support/tiny-reference.ts';
import { createTinyWeights, tinyVocabulary } from '../../support/tiny-weights.ts';
import { flatten, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import type { Output } from '../kernels/run-onnx.ts';
import { editJson, withFolder } from './model-folders.ts';

const tolerance = 1e-5;

interface Text {
  readonly ids: number[];
  readonly typeIds: number[];
}

const textOf = (tokens: string, segmentOne = 0): Text => {
  const ids = tokens.split(' ').map(tinyId);
  return { ids, typeIds: ids.map((_, index) => (index < ids.length - segmentOne ? 0 : 1)) };
};

const pair = textOf('[CLS] the river [SEP] a boat on the lake [SEP]', 6);
const short = textOf('[CLS] sun [SEP] moon [SEP]', 2);
const passages = 'river lake fish bird tree apple stone night horse snow'.split(' ');

/** Texts of one run, padded on the right. */
function feedsOf(texts: readonly Text[]) {
  const length = Math.max(...texts.map(({ ids }) => ids.length));
  const pad = (values: readonly number[]): number[] => Array.from({ length }, (_, index) => values[index] ?? 0);
  return {
    input_ids: intTensor(texts.map(({ ids }) => pad(ids))),
    attention_mask: intTensor(texts.map(({ ids }) => pad(ids.map(() => 1)))),
    token_type_ids: intTensor(texts.map(({ typeIds }) => pad(typeIds))),
  };
}

/** Outputs of a tiny model after it was read from its folder and prepared. */
async function runPrepared(
  kind: TinyKindName,
  uses: ModelUse[],
  texts: readonly Text[],
): Promise<Record<string, Output>> {
  return withFolder(async (parent) => {
    await writeTinyModel(kind, join(parent, 'tiny'));
    const [load] = await prepareModels(
      [await readModelFolder(join(parent, 'tiny'), uses, 'auto')],
      join(parent, 'cache'),
    );
    return runModel(load?.graphPath ?? '', feedsOf(texts));
  });
}

describe('tiny cross-encoder', () => {
  const weights = tinyWeightsOf('crossEncoder');
  let found: Record<string, Output>;
  beforeAll(async () => {
    found = await runPrepared('crossEncoder', ['rerank'], [pair, short]);
  });

  it('its logits equal the hand computation, padding or not', () => {
    const expected = [pair, short].flatMap(({ ids, typeIds }) => tinyLogits(weights, ids, typeIds));
    expect(found['trivec_logit']?.dims).toEqual([2, 1]);
    expect(maxDifference(found['trivec_logit']?.values ?? [], expected)).toBeLessThan(tolerance);
  });

  it('its logits differ when the segments are all zero', async () => {
    const flat = [pair, short].map(({ ids }) => ({ ids, typeIds: ids.map(() => 0) }));
    const zeros = (await runPrepared('crossEncoder', ['rerank'], flat))['trivec_logit']?.values ?? [];
    const logits = found['trivec_logit']?.values ?? [];
    expect(zeros.every((value, index) => Math.abs(value - (logits[index] ?? NaN)) > 100 * tolerance)).toBe(true);
    expect(
      maxDifference(
        zeros,
        flat.flatMap(({ ids }) => tinyLogits(weights, ids)),
      ),
    ).toBeLessThan(tolerance);
  });

  it('ten passages get ten different scores on both sides of zero', () => {
    const logits = passages.map((word) => {
      const { ids, typeIds } = textOf(`[CLS] what swim [SEP] the ${word} [SEP]`, 3);
      return tinyLogits(weights, ids, typeIds)[0] ?? NaN;
    });
    expect(new Set(logits.map((logit) => logit.toFixed(4))).size).toBe(10);
    expect(Math.min(...logits)).toBeLessThan(0);
    expect(Math.max(...logits)).toBeGreaterThan(0);
  });

  it('a Sigmoid that the export kept is left out of the logit', async () => {
    const twin = (await runPrepared('crossEncoderWithSigmoid', ['rerank'], [pair, short]))['trivec_logit']?.values;
    expect(maxDifference(twin ?? [], found['trivec_logit']?.values ?? [])).toBeLessThan(tolerance);
  });

  it('an activation that its files state is never a second one: the score stays the sigmoid of the logit', async () => {
    for (const activation of ['Sigmoid', 'Identity', 'Softmax']) {
      await withFolder(async (parent) => {
        const folder = join(parent, 'tiny');
        const stated = `torch.nn.modules.${activation === 'Identity' ? 'linear' : 'activation'}.${activation}`;
        await writeTinyModel('crossEncoder', folder);
        await editJson(join(folder, 'config.json'), {
          sbert_ce_default_activation_function: stated,
          sentence_transformers: { activation_fn: stated },
        });
        expect((await readModelFolder(folder, ['rerank'], 'auto')).scoreActivation).toBe('sigmoid');
      });
    }
  });
});

describe('tiny dense encoder', () => {
  it('its vectors and rows equal the hand computation beside a longer text', async () => {
    const weights = tinyWeightsOf('dense');
    const texts = [
      textOf('[CLS] hello world [SEP]'),
      textOf('[CLS] the old dog and the small cat sleep in the house [SEP]'),
    ];
    const found = await runPrepared('dense', ['embed', 'multiVector'], texts);
    const expected = texts.flatMap(({ ids }) => tinyDense(weights, ids));
    expect(maxDifference(found['trivec_dense']?.values ?? [], expected)).toBeLessThan(tolerance);
    const rows = flatten(lateInteractionReference(tinyHiddenState(weights, texts[0]?.ids ?? [])));
    expect(maxDifference((found['trivec_rows']?.values ?? []).slice(0, rows.length), rows)).toBeLessThan(tolerance);
  });
});

describe('tiny model folder', () => {
  it('is the same for the same seed and another for another seed', () => {
    const [one, same, other] = [createTinyWeights(1), createTinyWeights(1), createTinyWeights(1, 21)].map((weights) =>
      Buffer.from(encodeTinyGraph(weights, 'logits')),
    );
    expect(one?.equals(same ?? Buffer.alloc(0))).toBe(true);
    expect(one?.equals(other ?? Buffer.alloc(0))).toBe(false);
  });

  it('has a tokenizer that the reference library reads, with pair segments', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('crossEncoder', folder);
      const tokenizer = Tokenizer.fromFile(join(folder, 'tokenizer.json'));
      const encoding = await tokenizer.encode('The RIVER', 'a boat on the lake', { addSpecialTokens: true });
      expect(Array.from(encoding.getIds(), Number)).toEqual(pair.ids);
      expect(Array.from(encoding.getTypeIds(), Number)).toEqual(pair.typeIds);
      const pieces = await tokenizer.encode('boats zebra', null, { addSpecialTokens: false });
      expect(Array.from(pieces.getIds(), Number)).toEqual(['boat', '##s', '[UNK]'].map(tinyId));
    });
  });

  it('has about a hundred different tokens', () => {
    expect(new Set(tinyVocabulary).size).toBe(tinyVocabulary.length);
    expect(tinyVocabulary.length).toBeGreaterThan(90);
  });

  it('declares its three inputs and its output', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('fiveLabels', folder);
      const graph = describeGraph(await readFile(join(folder, 'onnx/model.onnx')));
      expect(graph.opset).toBe(17);
      expect(graph.inputs.map(({ name }) => name)).toEqual(['input_ids', 'attention_mask', 'token_type_ids']);
      expect(graph.outputs).toEqual([{ name: 'logits', elementType: 1, shape: ['batch', 5] }]);
    });
  });
});
