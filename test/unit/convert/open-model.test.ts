/** Owns the rules of opening a model without its weights and of writing it again. */
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { equals, fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeAddition } from '../../../src/kernels/onnx/append.ts';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import { bytesField } from '../../../src/kernels/onnx/wire.ts';
import { openModel } from '../../../src/model/convert/open-model.ts';
import { ConfigurationError } from '../../../src/errors.ts';
import { floatTensor, runModel } from '../kernels/run-onnx.ts';
import { convertedFile, modelBytes, numbers, withFolder } from './graphs.ts';

/** `x` times a large constant, plus a small one. */
const affine = (): Uint8Array =>
  modelBytes((builder) => {
    const x = builder.input('x', elementTypes.float32, ['rows', 40]);
    const product = builder.node('MatMul', [x, builder.floats(numbers(40 * 30), [40, 30])]);
    builder.output('y', builder.node('Add', [product, builder.floats(numbers(30, 2))]), ['rows', 30]);
  });

const withModel = <Result>(bytes: Uint8Array, use: (path: string) => Promise<Result>): Promise<Result> =>
  withFolder(async (folder) => {
    const path = join(folder, 'model.onnx');
    await writeFile(path, bytes);
    return use(path);
  });

describe('openModel', () => {
  it('large values stay in the file, small ones are in the graph', async () => {
    await withModel(affine(), async (path) => {
      const open = openModel(path);
      const sizes = open.graph.initializer.map(({ name, rawData }) => [
        open.values.get(name)?.byteLength,
        rawData.length,
      ]);
      expect(sizes).toEqual([
        [4800, 0],
        [undefined, 120],
      ]);
    });
  });

  it('a model that is written without a change holds exactly what it held', async () => {
    await withModel(affine(), async (path) => {
      const before = fromBinary(ModelProtoSchema, await readFile(path));
      const after = fromBinary(ModelProtoSchema, await convertedFile(path, []));
      // Large tensors are written behind the others: the order of constants means nothing.
      for (const { graph } of [before, after]) graph?.initializer.sort((a, b) => a.name.localeCompare(b.name));
      expect(equals(ModelProtoSchema, after, before)).toBe(true);
      const x = floatTensor([[...numbers(40, 3)]]);
      expect(await runModel(await convertedFile(path, []), { x })).toEqual(await runModel(path, { x }));
    });
  });

  it('fields that are not declared are kept, in the model and in its graph', async () => {
    const text = new TextEncoder().encode('kept as it is');
    await withModel(affine(), async (path) => {
      await appendFile(path, bytesField(6, [text]));
      await appendFile(path, bytesField(7, [bytesField(10, [text])]));
      const written = fromBinary(ModelProtoSchema, await convertedFile(path, []));
      expect(written.$unknown?.map(({ no }) => no)).toEqual([6]);
      expect(written.graph?.$unknown?.map(({ no }) => no)).toEqual([10]);
    });
  });

  it('a graph in several pieces is one graph', async () => {
    await withModel(affine(), async (path) => {
      const builder = createGraphBuilder(17, 'added');
      builder.output('z', builder.node('Mul', ['y', builder.floats(numbers(30, 5, 100))]), ['rows', 30]);
      await appendFile(path, encodeAddition(builder.build()));
      const x = floatTensor([[...numbers(40, 3)]]);
      expect(await runModel(await convertedFile(path, []), { x })).toEqual(await runModel(path, { x }));
      expect(openModel(path).graph.output.map(({ name }) => name)).toEqual(['y', 'z']);
    });
  });

  it('a file that is cut off anywhere inside its graph is refused by name', async () => {
    const bytes = affine();
    await withModel(bytes, async (path) => {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 20, max: bytes.length - 1 }), async (length) => {
          await writeFile(path, bytes.subarray(0, length));
          expect(() => openModel(path)).toThrow(ConfigurationError);
          expect(() => openModel(path)).toThrow(path);
        }),
        { numRuns: 40 },
      );
    });
  });

  it('bytes that are no model end in a refusal, never in a hang or another error', async () => {
    await withModel(affine(), async (path) => {
      await fc.assert(
        fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
          await writeFile(path, bytes);
          try {
            openModel(path);
          } catch (error) {
            expect(error).toBeInstanceOf(ConfigurationError);
          }
        }),
        { numRuns: 100 },
      );
    });
  });
});
