/** Owns the tiny models as ONNX graphs. */
import { create, toBinary } from '@bufbuild/protobuf';
import { createGraphBuilder, elementTypes } from '../../src/kernels/onnx/builder.ts';
import type { GraphBuilder } from '../../src/kernels/onnx/builder.ts';
import { ModelProtoSchema } from '../../src/kernels/onnx/onnx_pb.ts';
import type { TinyWeights, WeightMatrix } from './tiny-weights.ts';

/** The operator set in which LayerNormalization became a standard operator. */
const opset = 17;

function addHiddenState(builder: GraphBuilder, weights: TinyWeights): string {
  const { node } = builder;
  const free = ['batch', 'sequence'];
  const ids = builder.input('input_ids', elementTypes.int64, free);
  const mask = builder.input('attention_mask', elementTypes.int64, free);
  const typeIds = builder.input('token_type_ids', elementTypes.int64, free);
  const constant = ({ values, rows, columns }: WeightMatrix): string => builder.floats(values, [rows, columns]);
  const multiply = (rows: string, matrix: WeightMatrix): string => node('MatMul', [rows, constant(matrix)]);
  const ones = builder.floats(Array.from({ length: weights.words.columns }, () => 1));
  const normalizeLayer = (rows: string): string => node('LayerNormalization', [rows, ones], { axis: -1 });

  const length = node('Gather', [node('Shape', [ids]), builder.ints([1])], { axis: 0 });
  const positions = node('Slice', [constant(weights.positions), builder.ints([0]), length, builder.ints([0])]);
  const tokens = node('Add', [
    node('Gather', [constant(weights.words), ids]),
    node('Gather', [constant(weights.segments), typeIds]),
  ]);
  const embedded = normalizeLayer(node('Add', [tokens, positions]));

  const isReal = node('Reshape', [node('Cast', [mask], { to: elementTypes.float32 }), builder.ints([0, 1, -1])]);
  const bias = node('Mul', [node('Sub', [isReal, builder.floats([1])]), builder.floats([10_000])]);
  const keys = node('Transpose', [multiply(embedded, weights.key)], { perm: [0, 2, 1] });
  const products = node('MatMul', [multiply(embedded, weights.query), keys]);
  const scaled = node('Div', [products, builder.floats([Math.sqrt(weights.key.columns)])]);
  const shares = node('Softmax', [node('Add', [scaled, bias])], { axis: -1 });
  const mixed = node('MatMul', [shares, multiply(embedded, weights.value)]);
  const attended = normalizeLayer(node('Add', [multiply(mixed, weights.attentionOut), embedded]));

  const inner = node('Relu', [multiply(attended, weights.innerIn)]);
  return normalizeLayer(node('Add', [multiply(inner, weights.innerOut), attended]));
}

function addLogits(builder: GraphBuilder, hidden: string, { pooler, classifier }: TinyWeights): string {
  const first = builder.node('Gather', [hidden, builder.ints([0], [])], { axis: 1 });
  const pooled = builder.node('Tanh', [
    builder.node('MatMul', [first, builder.floats(pooler.values, [pooler.rows, pooler.columns])]),
  ]);
  const weights = builder.floats(classifier.values, [classifier.rows, classifier.columns]);
  return builder.node('MatMul', [pooled, weights]);
}

/** What a tiny graph ends with; `probability` is a logit behind a Sigmoid. */
export type TinyOutput = 'hiddenState' | 'logits' | 'probability';

/** Bytes of the tiny model's graph. */
export function encodeTinyGraph(weights: TinyWeights, output: TinyOutput): Uint8Array {
  const builder = createGraphBuilder(opset, 'tiny');
  const hidden = addHiddenState(builder, weights);
  if (output === 'hiddenState') {
    builder.output('last_hidden_state', hidden, ['batch', 'sequence', weights.words.columns]);
  } else {
    const logits = addLogits(builder, hidden, weights);
    const lastOperator = output === 'probability' ? 'Sigmoid' : 'Identity';
    builder.output('logits', logits, ['batch', weights.classifier.columns], lastOperator);
  }
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: 8n,
      producerName: 'trivec tests',
      opsetImport: [{ domain: '', version: BigInt(opset) }],
      graph: { ...builder.build(), name: 'tiny' },
    }),
  );
}
