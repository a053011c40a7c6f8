/** Owns the making of an attention bias from the mask of a fused attention operator. */
import { elementTypes } from '../../kernels/onnx/builder.ts';
import type { NodeProto, TensorProto } from '../../kernels/onnx/onnx_pb.ts';
import { maxFloat16, narrowFloats } from './half.ts';
import type { OpenModel } from './open-model.ts';
import { attributeOf, intAttribute, makeNode } from './make-node.ts';
import type { NextName } from './make-node.ts';
import { smallTensor } from './tensor-values.ts';

/** Nodes and the name of what they make; the nodes are given once for each bias. */
export interface MadeBias {
  readonly nodes: readonly NodeProto[];
  readonly name: string;
}

/**
 * The bias of a mask: 0 for tokens that are read, `filter` for the others; null for a mask of another form.
 * @shape int32 [batch, sequence] or lengths [batch] -> [batch, 1, sequence, sequence]
 */
export type MaskBias = (mask: string, rows: string, dataType: number, filter: number) => MadeBias | null;

type Producers = ReadonlyMap<string, NodeProto>;

/** Number of dimensions of a tensor; null where the graph does not tell. */
function rankOf(name: string, open: OpenModel, producers: Producers): number | null {
  const { input, valueInfo } = open.graph;
  const declared = [...input, ...valueInfo].find((value) => value.name === name)?.type?.tensorType?.shape;
  if (declared !== undefined) return declared.dim.length;
  const producer = producers.get(name);
  switch (producer?.opType) {
    case 'Cast':
    case 'Identity':
      return rankOf(producer.input[0] ?? '', open, producers);
    case 'ReduceSum': {
      const rank = rankOf(producer.input[0] ?? '', open, producers);
      const keepsAxis = (attributeOf(producer, 'keepdims')?.i ?? 1n) === 1n;
      return rank === null || keepsAxis ? rank : rank - 1;
    }
    case 'EmbedLayerNormalization':
      return producer.output[1] === name ? 1 : null;
    default:
      return null;
  }
}

/** A constant of one number, or of a list of whole numbers. */
function createConstants({ graph }: OpenModel, nextName: NextName) {
  const add = (tensor: TensorProto): string => {
    graph.initializer.push(tensor);
    return tensor.name;
  };
  return {
    float(value: number, dataType: number): string {
      const floats = Float32Array.of(dataType === elementTypes.float16 ? Math.max(value, -maxFloat16) : value);
      const values = dataType === elementTypes.float16 ? narrowFloats(floats) : floats;
      return add(smallTensor(nextName('number'), [], dataType, values));
    },
    ints: (values: readonly number[], dims: readonly number[] = [values.length]): string =>
      add(smallTensor(nextName('numbers'), dims, elementTypes.int64, BigInt64Array.from(values.map(BigInt)))),
  };
}

/** A maker of biases, one for each mask however many layers share it. */
export function createMaskBias(open: OpenModel, producers: Producers, nextName: NextName): MaskBias {
  const constants = createConstants(open, nextName);
  const made = new Map<string, string>();

  /** Nodes that say for each token of each row whether it is read. */
  function addIsRead(rank: number, mask: string, rows: string, add: AddNode): string {
    if (rank === 2) return add('Cast', [mask], elementTypes.bool);
    const length = add('Gather', [add('Shape', [rows]), constants.ints([1], [])]);
    const positions = add('Range', [constants.ints([0], []), length, constants.ints([1], [])]);
    const lengths = add('Reshape', [add('Cast', [mask], elementTypes.int64), constants.ints([-1, 1])]);
    return add('Less', [positions, lengths]);
  }

  return (mask, rows, dataType, filter) => {
    const key = JSON.stringify([mask, dataType, filter]);
    const known = made.get(key);
    if (known !== undefined) return { nodes: [], name: known };
    const rank = rankOf(mask, open, producers);
    if (rank !== 1 && rank !== 2) return null;
    const nodes: NodeProto[] = [];
    const add: AddNode = (opType, input, to) => {
      const name = nextName(opType);
      nodes.push(makeNode(opType, input, [name], to === undefined ? [] : [intAttribute('to', to)]));
      return name;
    };
    const isRead = addIsRead(rank, mask, rows, add);
    const numbers = add('Where', [isRead, constants.float(0, dataType), constants.float(filter, dataType)]);
    const row = add('Reshape', [numbers, constants.ints([0, 1, 1, -1])]);
    const length = add('Gather', [add('Shape', [rows]), constants.ints([1])]);
    const ones = constants.ints([1, 1]);
    const shape = nextName('shape');
    const target = makeNode('Concat', [ones, length, constants.ints([1])], [shape], [intAttribute('axis', 0)]);
    nodes.push(target);
    const name = add('Expand', [row, shape]);
    made.set(key, name);
    return { nodes, name };
  };
}

type AddNode = (opType: string, input: readonly string[], to?: number) => string;
