/** Owns MaxSim of one document with many queries at once: a matrix product for all query rows together. */
import { create, toBinary } from '@bufbuild/protobuf';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { createGraphBuilder, elementTypes } from '../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../src/kernels/onnx/onnx_pb.ts';
import { reduce } from '../../src/kernels/onnx/operators.ts';

const opset = 17;

/** Scores of one document, one for each query. @shape f32 [rows x dimension] -> f64 [queries] */
export type ScoreDocument = (rows: Float32Array) => Promise<Float64Array>;

/** A scorer for queries whose rows are given. @shape each query f32 [rows x dimension] */
export async function createMaxSim(queries: readonly Float32Array[], dimension: number): Promise<ScoreDocument> {
  const rowCounts = queries.map((rows) => rows.length / dimension);
  const columns = transpose(queries, rowCounts, dimension);
  const allRows = rowCounts.reduce((sum, count) => sum + count, 0);
  const builder = createGraphBuilder(opset);
  const rows = builder.input('rows', elementTypes.float32, ['rows', dimension]);
  const products = builder.node('MatMul', [rows, builder.floats(columns, [dimension, allRows])]);
  builder.output('best', reduce(builder, 'ReduceMax', products, 0, false), [allRows]);
  const model = create(ModelProtoSchema, {
    irVersion: 8n,
    opsetImport: [{ domain: '', version: BigInt(opset) }],
    graph: { ...builder.build(), name: 'all_queries' },
  });
  const session = await InferenceSession.create(toBinary(ModelProtoSchema, model));
  return async (documentRows) => {
    const feeds = { rows: new Tensor('float32', documentRows, [documentRows.length / dimension, dimension]) };
    const best = (await session.run(feeds))['best']?.data as Float32Array;
    let next = 0;
    return Float64Array.from(rowCounts, (count) => {
      let sum = 0;
      for (const end = next + count; next < end; next += 1) sum += best[next] ?? Number.NaN;
      return sum;
    });
  };
}

/** The rows of all queries as columns side by side. @shape -> f32 [dimension x rows of all queries] */
function transpose(queries: readonly Float32Array[], rowCounts: readonly number[], dimension: number): Float32Array {
  const allRows = rowCounts.reduce((sum, count) => sum + count, 0);
  const columns = new Float32Array(dimension * allRows);
  let column = 0;
  for (const values of queries) {
    for (let start = 0; start < values.length; start += dimension, column += 1) {
      for (let position = 0; position < dimension; position += 1) {
        columns[position * allRows + column] = values[start + position] ?? Number.NaN;
      }
    }
  }
  return columns;
}
