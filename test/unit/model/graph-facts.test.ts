/** Owns the rules of what is taken from a graph instead of from names and configuration files. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { createGraphBuilder, elementTypes } from '../../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../../src/kernels/onnx/builder.ts';
import { FunctionProtoSchema, ModelProtoSchema } from '../../../src/kernels/onnx/onnx_pb.ts';
import { describeGraph } from '../../../src/kernels/onnx/read.ts';
import { tableRowsOf } from '../../../src/kernels/onnx/tables.ts';
import { findVariants } from '../../../src/model/graph-file.ts';
import type { DeviceAbilities } from '../../../src/model/graph-variant.ts';
import { readModelFolder } from '../../../src/model/read-folder.ts';
import { writeTinyModel } from '../../support/tiny-models.ts';
import { convertedFile } from '../convert/graphs.ts';
import { editJson, problemsOf, withFolder } from './model-folders.ts';

const graphName = 'onnx/model.onnx';
const gpu: DeviceAbilities = { kind: 'cuda', hasFloat16: true, arch: 'x64' };

/** Runs `use` with a tiny dense model. */
const withTiny = <Result>(use: (folder: string) => Promise<Result>): Promise<Result> =>
  withFolder(async (parent) => {
    const folder = join(parent, 'tiny');
    await writeTinyModel('dense', folder);
    return use(folder);
  });

const exported = new URL('../../golden/tiny/models/bert-dense', import.meta.url).pathname;
/** Sizes of its tables. */
const exportFacts = { tokens: 341, positions: 64 };

/** Runs `use` with a copy of a model as exporters write it. */
const withExport = <Result>(use: (folder: string) => Promise<Result>): Promise<Result> =>
  withFolder(async (parent) => {
    const folder = join(parent, 'bert-dense');
    await cp(exported, folder, { recursive: true });
    return use(folder);
  });

describe('precision of a graph file', () => {
  it('is that of its weights, whatever its name says', async () => {
    await withTiny(async (folder) => {
      const path = join(folder, graphName);
      const plain = await readFile(path);
      await writeFile(path, await convertedFile(path, ['narrow']));
      expect(await findVariants(folder, null, 'x64')).toEqual([{ path: graphName, precision: 'fp16' }]);
      expect(await readModelFolder(folder, ['embed'], 'fp32')).toMatchObject({
        precision: 'fp32',
        conversion: ['widen'],
      });
      const half = await readModelFolder(folder, ['embed'], 'fp16');
      expect(half).toMatchObject({ precision: 'fp16', graphPath: path });
      expect(half.conversion).toBeUndefined();
      await writeFile(join(folder, 'onnx/model_fp16.onnx'), plain);
      expect(await readModelFolder(folder, ['embed'], 'auto')).toMatchObject({
        graphPath: join(folder, 'onnx/model_fp16.onnx'),
        precision: 'fp32',
      });
    });
  });

  it('is int8 where the graph quantises while it runs', async () => {
    await withTiny(async (folder) => {
      const path = join(folder, graphName);
      await writeFile(path, await convertedFile(path, ['quantize']));
      expect(await findVariants(folder, null, 'x64')).toEqual([{ path: graphName, precision: 'int8' }]);
    });
  });

  it('a file that cannot be read keeps what its name says, and is refused where it is taken', async () => {
    await withTiny(async (folder) => {
      await writeFile(join(folder, graphName), 'no graph');
      expect(await findVariants(folder, null, 'x64')).toEqual([{ path: graphName, precision: 'fp32' }]);
      expect(await problemsOf(readModelFolder(folder, ['embed'], 'auto'))).toHaveLength(1);
    });
  });

  it('a graph that cannot be narrowed is served in float32 on a GPU', async () => {
    await withTiny(async (folder) => {
      const path = join(folder, graphName);
      const model = fromBinary(ModelProtoSchema, await readFile(path));
      model.functions.push(create(FunctionProtoSchema, { name: 'own' }));
      await writeFile(path, toBinary(ModelProtoSchema, model));
      expect(await readModelFolder(folder, ['embed'], 'auto', { device: gpu })).toMatchObject({ precision: 'fp32' });
      const problems = await problemsOf(readModelFolder(folder, ['embed'], 'fp16', { device: gpu }));
      expect(problems).toEqual([expect.stringContaining('holds local functions')]);
    });
  });
});

describe('tables of a graph', () => {
  const rowsOf = (fill: (builder: GraphBuilder) => void) => {
    const builder = createGraphBuilder(17, 'test');
    fill(builder);
    return tableRowsOf(builder.build());
  };
  const ids = (builder: GraphBuilder) => builder.input('input_ids', elementTypes.int64, ['b', 's']);
  const table = (builder: GraphBuilder, rows: number, width = 2) =>
    builder.floats(new Float32Array(rows * width), [rows, width]);

  it('are found through operators that only pass values on', () => {
    const found = rowsOf((builder) => {
      const flat = builder.node('Reshape', [ids(builder), builder.ints([-1])]);
      builder.node('Gather', [builder.node('Identity', [table(builder, 40)]), flat]);
    });
    expect(found).toEqual({ tokens: 40, positions: null });
  });

  it('of positions have the width of that of tokens, and are not picked from by tokens or segments', () => {
    const found = rowsOf((builder) => {
      builder.node('Gather', [table(builder, 40), ids(builder)]);
      builder.node('Gather', [table(builder, 30), builder.input('token_type_ids', elementTypes.int64, ['b', 's'])]);
      builder.node('Gather', [table(builder, 20), builder.ints([0, 1])]);
      builder.node('Gather', [table(builder, 50, 4), builder.ints([0, 1])]);
      builder.node('Gather', [table(builder, 2), builder.ints([0, 0])]);
    });
    expect(found).toEqual({ tokens: 40, positions: 20 });
  });

  it('none are seen where rows are picked of what is computed', () => {
    const found = rowsOf((builder) => {
      builder.node('Gather', [builder.input('x', elementTypes.float32, ['n', 2]), ids(builder)]);
    });
    expect(found).toEqual({ tokens: null, positions: null });
  });

  it('an export shows both, and its manifest the one of tokens', async () => {
    await withExport(async (folder) => {
      const { tableRows } = describeGraph(await readFile(join(folder, graphName)));
      expect(tableRows).toEqual({ tokens: exportFacts.tokens, positions: exportFacts.positions });
      expect(await readModelFolder(folder, ['embed'], 'auto')).toMatchObject({ tokenTableRows: exportFacts.tokens });
    });
  });

  it('a limit beyond the table of positions is refused with both numbers', async () => {
    await withExport(async (folder) => {
      const { positions } = exportFacts;
      await editJson(join(folder, 'config.json'), { max_position_embeddings: positions * 2 });
      const limit = (tokens: number) =>
        Promise.all([
          editJson(join(folder, 'tokenizer_config.json'), { model_max_length: tokens }),
          editJson(join(folder, 'sentence_bert_config.json'), { max_seq_length: tokens }),
        ]);
      await limit(positions);
      expect(await problemsOf(readModelFolder(folder, ['embed'], 'auto'))).toEqual([]);
      await limit(positions + 1);
      const [problem] = await problemsOf(readModelFolder(folder, ['embed'], 'auto'));
      expect(problem).toContain(`table of positions is for ${String(positions)} tokens`);
      expect(problem).toContain(`state a limit of ${String(positions + 1)}`);
    });
  });
});

describe('files of models of other families', () => {
  it('the hidden size is called d_model in T5', async () => {
    await withTiny(async (folder) => {
      const path = join(folder, 'config.json');
      const { hidden_size: d_model } = JSON.parse(await readFile(path, 'utf8')) as { hidden_size: number };
      await editJson(path, { hidden_size: undefined, d_model, architectures: ['T5EncoderModel'] });
      expect(await readModelFolder(folder, ['embed'], 'auto')).toMatchObject({ hiddenSize: d_model });
    });
  });

  it('a causal language model without a catalogue entry is told what it lacks to rank', async () => {
    await withFolder(async (parent) => {
      const folder = join(parent, 'tiny');
      await writeTinyModel('crossEncoder', folder);
      await editJson(join(folder, 'config.json'), { architectures: ['Qwen3ForCausalLM'] });
      const problems = await problemsOf(readModelFolder(folder, ['rerank'], 'auto'));
      expect(problems).toEqual([expect.stringContaining('or a "yesNo" entry for this model in the catalog.json')]);
    });
  });
});
