/** Owns the MaxSim score as an ONNX sub-graph and as a model of its own. */
import { create } from '@bufbuild/protobuf';
import { createGraphBuilder, elementTypes } from '../onnx/builder.ts';
import type { GraphBuilder } from '../onnx/builder.ts';
import { reduce } from '../onnx/operators.ts';
import { ModelProtoSchema } from '../onnx/onnx_pb.ts';
import type { ModelProto } from '../onnx/onnx_pb.ts';

/** Operator set and format version of the stand-alone model. */
const standAlone = { opset: 17, irVersion: 8n } as const;

/** Names of the stand-alone model's inputs. */
export const maxSimInputs = { queryRows: 'query_rows', passageRows: 'passage_rows' } as const;

/**
 * The sum over the query's rows of the largest dot product with a row of the passage.
 * @shape f32 [queryRows, dimension], f32 [passageRows, dimension] -> f32 [1]
 * @source ColBERT (Khattab and Zaharia 2020), equation 3
 */
export function maxSim(builder: GraphBuilder, queryRows: string, passageRows: string): string {
  const products = builder.node('Gemm', [queryRows, passageRows], { transB: 1 });
  return reduce(builder, 'ReduceSum', reduce(builder, 'ReduceMax', products, 1, false), 0, true);
}

/** A model that does nothing but MaxSim, with one float32 output of shape [1] called `outputName`. */
export function maxSimModel(outputName: string, opset: number = standAlone.opset): ModelProto {
  const builder = createGraphBuilder(opset);
  const queryRows = builder.input(maxSimInputs.queryRows, elementTypes.float32, ['query_tokens', 'dimension']);
  const passageRows = builder.input(maxSimInputs.passageRows, elementTypes.float32, ['passage_tokens', 'dimension']);
  builder.output(outputName, maxSim(builder, queryRows, passageRows), [1]);
  return create(ModelProtoSchema, {
    irVersion: standAlone.irVersion,
    producerName: 'trivec',
    opsetImport: [{ domain: '', version: BigInt(opset) }],
    graph: { ...builder.build(), name: 'max_sim' },
  });
}
