/** Owns SPLADE max pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { maskColumn, reduce } from '../onnx/operators.ts';

/** What is added to the logits of padding: below every real logit, far inside float32. */
const paddingBias = 1e9;

/**
 * The weight of each vocabulary term: log(1 + max over the real tokens of relu(logit)).
 * The maximum is taken first, which gives the same numbers and leaves one row per text for the rest.
 * @shape f32 [batch, sequence, vocabulary], int64 [batch, sequence] -> f32 [batch, vocabulary]
 * @source SPLADE v2 (Formal et al. 2021), equation 6
 */
export function splade(builder: GraphBuilder, logits: string, mask: string | null): string {
  const maxima = reduce(builder, 'ReduceMax', mask === null ? logits : hidePadding(builder, logits, mask), 1, false);
  const positive = builder.node('Relu', [maxima]);
  return builder.node('Log', [builder.node('Add', [positive, builder.floats([1])])]);
}

/** Real tokens get exactly 0 added, so that their logits do not change by a bit. */
function hidePadding(builder: GraphBuilder, logits: string, mask: string): string {
  const isPadding = builder.node('Sub', [maskColumn(builder, mask), builder.floats([1])]);
  return builder.node('Add', [logits, builder.node('Mul', [isPadding, builder.floats([paddingBias])])]);
}
