/** Owns the widening of a graph from float16 to float32. */
import { elementTypes } from '../../kernels/onnx/builder.ts';
import type { TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { widenHalves } from './half.ts';
import { mapBytes } from './lazy-bytes.ts';
import { replaceValues } from './open-model.ts';
import type { OpenModel } from './open-model.ts';
import { bytesOf, halvesOf, setSmallValues, smallValues } from './tensor-values.ts';
import { attributeTensors, graphsOf, nodesOf } from './visit.ts';

const { float16, float32 } = elementTypes;

/** Attributes that name the element type of a node's result. @source ONNX operators: Cast, EyeLike, RandomNormal */
const typeAttributes: ReadonlySet<string> = new Set(['to', 'dtype', 'stash_type', 'output_dtype']);

const widenBytes = (bytes: Uint8Array): Uint8Array => bytesOf(widenHalves(halvesOf(bytes)));

function widenSmall(tensor: TensorProto): void {
  if (tensor.dataType === float16) setSmallValues(tensor, float32, widenBytes(smallValues(tensor)));
}

function widenInitializer(open: OpenModel, tensor: TensorProto): void {
  const values = open.values.get(tensor.name);
  if (values === undefined || tensor.dataType !== float16) {
    widenSmall(tensor);
    return;
  }
  replaceValues(
    open,
    tensor,
    mapBytes(values, values.byteLength * 2, () => null, widenBytes),
  );
  tensor.dataType = float32;
}

/** Makes every float16 value of the graph a float32, exactly; names, and whatever else it holds, stay. */
export function widen(open: OpenModel): void {
  const nodes = nodesOf(open.model);
  for (const tensor of open.graph.initializer) widenInitializer(open, tensor);
  attributeTensors(nodes).forEach(widenSmall);
  for (const { attribute } of nodes) {
    for (const one of attribute) {
      if (typeAttributes.has(one.name) && one.i === BigInt(float16)) one.i = BigInt(float32);
    }
  }
  for (const graph of graphsOf(open.model)) {
    if (graph !== open.graph) graph.initializer.forEach(widenSmall);
    for (const { type } of [...graph.input, ...graph.output, ...graph.valueInfo]) {
      if (type?.tensorType?.elemType === float16) type.tensorType.elemType = float32;
    }
  }
}
