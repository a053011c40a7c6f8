/** Owns maximum pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { hidePadding, reduce } from '../onnx/operators.ts';

/**
 * The largest value of each column over a text's token rows; with a mask, over its real tokens only.
 * @shape f32 [batch, sequence, hidden], int64 [batch, sequence] -> f32 [batch, hidden]
 * @source Sentence-BERT (Reimers and Gurevych 2019), section 3, MAX strategy
 */
export function maxPool(builder: GraphBuilder, hidden: string, mask: string | null): string {
  return reduce(builder, 'ReduceMax', mask === null ? hidden : hidePadding(builder, hidden, mask), 1, false);
}
