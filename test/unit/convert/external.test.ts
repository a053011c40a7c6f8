/** Owns the rules of models that keep weights in a file beside the graph. */
import { mkdir, readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ConfigurationError } from '../../../src/errors.ts';
import { elementTypes } from '../../../src/kernels/onnx/builder.ts';
import {
  AttributeProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  StringEntryProtoSchema,
} from '../../../src/kernels/onnx/onnx_pb.ts';
import type { GraphProto } from '../../../src/kernels/onnx/onnx_pb.ts';
import { ensureCacheFile, ensureCacheLink } from '../../../src/model/cache-file.ts';
import { convertFile } from '../../../src/model/convert/converted-file.ts';
import { describeConverted } from '../../../src/model/convert/describe.ts';
import { narrowFloats } from '../../../src/model/convert/half.ts';
import type { ConversionStep } from '../../../src/model/convert/steps.ts';
import { bytesOf, floatsOf } from '../../../src/model/convert/tensor-values.ts';
import { prepareModels } from '../../../src/model/prepare.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import { writeTinyModel } from '../../support/tiny-models.ts';
import { floatTensor, intTensor, maxDifference, runModel } from '../kernels/run-onnx.ts';
import { modelBytes, numbers, withFolder } from './graphs.ts';

const { float16, float32 } = elementTypes;
const width = 32;
const dataName = 'model.onnx_data';

/** Moves the weights into one file, as exporters do; the bytes of that file. */
function moveOut(graph: GraphProto, location: string): Uint8Array {
  const weights = graph.initializer.filter(({ dataType }) => dataType !== elementTypes.int64);
  const parts = weights.map(({ rawData }) => rawData);
  let offset = 0;
  for (const tensor of weights) {
    const entries = { location, offset: String(offset), length: String(tensor.rawData.length) };
    tensor.externalData = Object.entries(entries).map(([key, value]) => create(StringEntryProtoSchema, { key, value }));
    tensor.dataLocation = 1;
    offset += tensor.rawData.length;
    tensor.rawData = new Uint8Array(0);
  }
  return Buffer.concat(parts);
}

interface ExternalModel {
  readonly graph: Uint8Array;
  readonly data: Uint8Array;
  /** The same model in one file. */
  readonly whole: Uint8Array;
}

function externalModel({ isHalf = false, location = dataName, seed = 1 } = {}): ExternalModel {
  let data: Uint8Array = new Uint8Array(0);
  const build = (change: (graph: GraphProto) => void): Uint8Array =>
    modelBytes(
      (builder) => {
        const x = builder.input('x', float32, ['n', width]);
        const rows = isHalf ? builder.node('Cast', [x], { to: float16 }) : x;
        const product = builder.node('MatMul', [rows, builder.floats(numbers(width * width, seed), [width, width])]);
        const sum = builder.node('Add', [product, builder.floats(numbers(width, seed + 1))]);
        builder.output('y', builder.node('Cast', [sum], { to: float32 }), ['n', width]);
      },
      (graph) => {
        for (const tensor of isHalf ? graph.initializer : []) {
          tensor.rawData = bytesOf(narrowFloats(new Float32Array(tensor.rawData.slice().buffer)));
          tensor.dataType = float16;
        }
        change(graph);
      },
    );
  const whole = build(() => undefined);
  const graph = build((changed) => {
    data = moveOut(changed, location);
  });
  return { graph, data, whole };
}

/** A product and a sum, after `change`. */
const affine = (change: (graph: GraphProto) => void): Uint8Array =>
  modelBytes((builder) => {
    const x = builder.input('x', float32, ['n', width]);
    const product = builder.node('MatMul', [x, builder.floats(numbers(width * width), [width, width])]);
    builder.output('y', builder.node('Add', [product, builder.floats(numbers(width))]), ['n', width]);
  }, change);

const feeds = { x: floatTensor([[...numbers(width, 9)]]) };
const valuesOf = async (model: Uint8Array | string) => (await runModel(model, feeds))['y']?.values ?? [];

/** A model's folder with this model in it, and an empty cache folder beside it. */
const withModel = <Result>(
  model: ExternalModel,
  use: (graphPath: string, cacheDir: string) => Promise<Result>,
): Promise<Result> =>
  withFolder(async (folder) => {
    await mkdir(join(folder, 'model/onnx'), { recursive: true });
    await mkdir(join(folder, 'cache'));
    const graphPath = join(folder, 'model/onnx/model.onnx');
    await writeFile(graphPath, model.graph);
    await writeFile(join(folder, 'model/onnx', dataName), model.data);
    return use(graphPath, join(folder, 'cache'));
  });

/** Writes the converted model and its companions; the path of its graph. */
async function place(
  graphPath: string,
  cacheDir: string,
  steps: readonly ConversionStep[],
  inlineLimitBytes?: number,
): Promise<string> {
  const file = await convertFile(graphPath, steps, 'tiny', inlineLimitBytes);
  for (const companion of file.companions) {
    const path = join(cacheDir, companion.name);
    if ('content' in companion) await ensureCacheFile(path, companion.content);
    else await ensureCacheLink(path, companion.sourcePath);
  }
  const path = join(cacheDir, `tiny-${file.label}.onnx`);
  await ensureCacheFile(path, file.graphFile);
  return path;
}

describe('weights outside the graph', () => {
  it('a copy of the graph in the cache finds them there, and the model folder stays as it was', async () => {
    const model = externalModel();
    await withModel(model, async (graphPath, cacheDir) => {
      const path = await place(graphPath, cacheDir, []);
      expect(await valuesOf(path)).toEqual(await valuesOf(model.whole));
      expect((await readdir(join(graphPath, '..'))).sort()).toEqual(['model.onnx', dataName]);
      expect(await readFile(join(graphPath, '..', dataName))).toEqual(Buffer.from(model.data));
      expect(await readdir(cacheDir)).toHaveLength(2);
    });
  });

  it('they are not copied where the file system can give a file a second name', async () => {
    await withModel(externalModel(), async (graphPath, cacheDir) => {
      await place(graphPath, cacheDir, []);
      const name = (await readdir(cacheDir)).find((one) => one.endsWith('.data')) ?? '';
      expect((await stat(join(cacheDir, name))).ino).toBe((await stat(join(graphPath, '..', dataName))).ino);
    });
  });

  it('a second start writes nothing', async () => {
    await withModel(externalModel(), async (graphPath, cacheDir) => {
      const path = await place(graphPath, cacheDir, []);
      const before = await stat(path, { bigint: true });
      await place(graphPath, cacheDir, []);
      const after = await stat(path, { bigint: true });
      expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
    });
  });

  it('a converted model has them inside', async () => {
    const model = externalModel({ isHalf: true });
    await withModel(model, async (graphPath, cacheDir) => {
      const path = await place(graphPath, cacheDir, ['widen']);
      await rm(join(graphPath, '..', dataName));
      expect(await readdir(cacheDir)).toHaveLength(1);
      expect(maxDifference(await valuesOf(path), await valuesOf(model.whole))).toBeLessThan(0.01);
    });
  });

  it('a converted model that would be too large for one file has them beside it, the same values', async () => {
    const model = externalModel({ isHalf: true });
    await withModel(model, async (graphPath, cacheDir) => {
      const inside = await valuesOf(await place(graphPath, cacheDir, ['widen']));
      await rm(join(cacheDir, (await readdir(cacheDir))[0] ?? ''));
      const path = await place(graphPath, cacheDir, ['widen'], 1000);
      expect((await readdir(cacheDir)).sort()).toEqual(['tiny-widen1.data', 'tiny-widen1.onnx']);
      expect(await valuesOf(path)).toEqual(inside);
    });
  });

  const refusals: Readonly<Record<string, (dataPath: string) => Promise<void>>> = {
    'is missing': (dataPath) => rm(dataPath),
    'cut off': (dataPath) => truncate(dataPath, 100),
  };
  it.each(Object.entries(refusals))('a file that %s is named at start, converted or not', async (reason, spoil) => {
    await withModel(externalModel(), async (graphPath) => {
      const dataPath = join(graphPath, '..', dataName);
      await spoil(dataPath);
      for (const steps of [[], ['quantize']] as const) {
        const refused = convertFile(graphPath, steps, 'tiny');
        await expect(refused).rejects.toThrow(ConfigurationError);
        await expect(refused).rejects.toThrow(dataPath);
        await expect(refused).rejects.toThrow(reason);
      }
    });
  });

  it('a place that no file can have is refused', async () => {
    for (const offset of ['-1', 'somewhere', '1e300']) {
      const spoil = (graph: GraphProto): void => {
        moveOut(graph, dataName);
        const entry = graph.initializer[0]?.externalData.find(({ key }) => key === 'offset');
        if (entry !== undefined) entry.value = offset;
      };
      await withModel({ ...externalModel(), graph: affine(spoil) }, async (graphPath) => {
        await expect(convertFile(graphPath, [], 'tiny')).rejects.toThrow('no possible place');
      });
    }
  });

  it('a value of a node in another file is refused', async () => {
    const inNode = (graph: GraphProto): void => {
      moveOut(graph, dataName);
      const [t] = graph.initializer.splice(0, 1);
      if (t === undefined) throw new Error('no constant');
      const attribute = [create(AttributeProtoSchema, { name: 'value', type: 4, t })];
      graph.node.unshift(create(NodeProtoSchema, { opType: 'Constant', output: [t.name], attribute }));
    };
    await withModel({ ...externalModel(), graph: affine(inNode) }, async (graphPath) => {
      await expect(convertFile(graphPath, [], 'tiny')).rejects.toThrow('a value of a node in another file');
    });
  });

  it('weights that were exchanged are another revision and another file in the cache, with the same graph', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('dense', join(folder, 'tiny'));
      const graphPath = join(folder, 'tiny/onnx/model.onnx');
      const model = fromBinary(ModelProtoSchema, await readFile(graphPath));
      if (model.graph === undefined) throw new Error('no graph');
      const data = moveOut(model.graph, dataName);
      await writeFile(graphPath, toBinary(ModelProtoSchema, model));
      const prepare = async (): Promise<readonly [path: string, revision: string, values: readonly number[]]> => {
        const manifest = await readModelFolder(join(folder, 'tiny'), ['embed'], 'auto');
        const [load] = await prepareModels([manifest], join(folder, 'cache'));
        const ids = { input_ids: intTensor([[2, 9, 3]]), attention_mask: intTensor([[1, 1, 1]]) };
        const path = load?.graphPath ?? '';
        const vector = (await runModel(path, { ...ids, token_type_ids: intTensor([[0, 0, 0]]) }))['trivec_dense'];
        return [path, manifest.revision, vector?.values ?? []];
      };
      await writeFile(join(graphPath, '..', dataName), data);
      const [firstPath, firstRevision, firstValues] = await prepare();
      const swapped = bytesOf(floatsOf(data).map((value) => value * value));
      await rm(join(graphPath, '..', dataName));
      await writeFile(join(graphPath, '..', dataName), swapped);
      const [secondPath, secondRevision, secondValues] = await prepare();
      expect([firstValues.length, secondValues.length]).toEqual([16, 16]);
      expect(secondRevision).not.toBe(firstRevision);
      expect(secondPath).not.toBe(firstPath);
      expect(maxDifference(firstValues, secondValues)).toBeGreaterThan(0.01);
    });
  });

  it('a description after a conversion still names the files that decide what is served', async () => {
    await withModel(externalModel({ isHalf: true }), async (graphPath) => {
      expect(describeConverted(graphPath, ['widen']).externalFiles).toEqual([dataName]);
    });
  });

  it.each(['../secret.bin', '/etc/hostname', 'a/../../secret.bin', ''])(
    'a graph that names the file "%s" outside its folder is refused',
    async (location) => {
      await withModel(externalModel({ location }), async (graphPath) => {
        await expect(convertFile(graphPath, [], 'tiny')).rejects.toThrow('which is not in its own folder');
      });
    },
  );
});
