/** Owns SPLADE pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { hidePadding, maskColumn, reduce } from '../onnx/operators.ts';

/** The variants of SPLADE. */
export interface SpladeVariant {
  readonly pooling: 'max' | 'sum';
  /** `log1pRelu` takes the logarithm twice. */
  readonly activation: 'relu' | 'log1pRelu';
}

/**
 * The weight of each vocabulary term: the maximum, or the sum, over the real tokens of log(1 + relu(logit)).
 * The maximum is taken first, which gives the same numbers and leaves one row per text for the rest.
 * @shape f32 [batch, sequence, vocabulary], int64 [batch, sequence] -> f32 [batch, vocabulary]
 * @source SPLADE v2 (Formal et al. 2021), equations 1 and 6; for the second logarithm Geng et al. 2025
 */
export function splade(
  builder: GraphBuilder,
  logits: string,
  mask: string | null,
  { pooling, activation }: SpladeVariant = { pooling: 'max', activation: 'relu' },
): string {
  if (pooling === 'sum') {
    const weights = activate(builder, logits, activation);
    const real = mask === null ? weights : builder.node('Mul', [weights, maskColumn(builder, mask)]);
    return reduce(builder, 'ReduceSum', real, 1, false);
  }
  const maxima = reduce(builder, 'ReduceMax', mask === null ? logits : hidePadding(builder, logits, mask), 1, false);
  return activate(builder, maxima, activation);
}

function activate(builder: GraphBuilder, logits: string, activation: SpladeVariant['activation']): string {
  const logOfOneMore = (tensor: string): string =>
    builder.node('Log', [builder.node('Add', [tensor, builder.floats([1])])]);
  const weights = logOfOneMore(builder.node('Relu', [logits]));
  return activation === 'log1pRelu' ? logOfOneMore(weights) : weights;
}
