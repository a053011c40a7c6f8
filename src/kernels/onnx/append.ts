/** Owns the adding of nodes, inputs and outputs to an ONNX file without a change to any byte that it has. */
import { create, toBinary } from '@bufbuild/protobuf';
import { ModelProtoSchema } from './onnx_pb.ts';
import type { GraphProto } from './onnx_pb.ts';

/**
 * The bytes that, written behind an ONNX file, add the nodes, constants, inputs and outputs of `addition` to its graph.
 * @source Protocol Buffers, "Last One Wins": repeated occurrences of an embedded message are merged
 */
export function encodeAddition(addition: GraphProto): Uint8Array {
  // Only these: a second operator set or graph name would replace or contradict what the file says.
  const { node, initializer, input, output } = addition;
  return toBinary(ModelProtoSchema, create(ModelProtoSchema, { graph: { node, initializer, input, output } }));
}
