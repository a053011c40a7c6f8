/** Owns how the graph of the probe is made; what is committed must be exactly this. */
import { create, toBinary } from '@bufbuild/protobuf';
import { createGraphBuilder, elementTypes } from '../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../src/kernels/onnx/onnx_pb.ts';

const opset = 17;
const irVersion = 8n;
const width = 384;
const innerWidth = 1536;

/**
 * The feed-forward half of a small transformer layer, with weights that the engine computes while it loads the graph.
 * @shape f32 [rows, 384] -> f32 [rows, 384]
 */
export function encodeProbeGraph(precision: 'fp32' | 'fp16'): Uint8Array {
  const builder = createGraphBuilder(opset, 'probe');
  const cast = (tensor: string, to: number): string =>
    precision === 'fp16' ? builder.node('Cast', [tensor], { to }) : tensor;
  const weights = (rows: number, columns: number): string => {
    const scalar = (value: number): string => builder.floats([value], []);
    const steps = builder.node('Range', [scalar(0), scalar(rows * columns), scalar(1)]);
    const waves = builder.node('Add', [builder.node('Cos', [steps]), scalar(0.2)]);
    const scaled = builder.node('Mul', [waves, scalar(0.05)]);
    return cast(builder.node('Reshape', [scaled, builder.ints([rows, columns])]), elementTypes.float16);
  };
  const input = cast(builder.input('x', elementTypes.float32, ['rows', width]), elementTypes.float16);
  const inner = builder.node('Relu', [builder.node('MatMul', [input, weights(width, innerWidth)])]);
  const outer = builder.node('MatMul', [inner, weights(innerWidth, width)]);
  builder.output('y', cast(outer, elementTypes.float32), ['rows', width]);
  const opsetImport = [{ domain: '', version: BigInt(opset) }];
  return toBinary(ModelProtoSchema, create(ModelProtoSchema, { irVersion, graph: builder.build(), opsetImport }));
}
