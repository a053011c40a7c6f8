/** Owns first-token pooling as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';

/**
 * The row of each text's first token, which padding on the right never moves.
 * @shape f32 [batch, sequence, hidden] -> f32 [batch, hidden]
 * @source Sentence-BERT (Reimers and Gurevych 2019), section 3, CLS strategy
 */
export function clsPool(builder: GraphBuilder, hidden: string): string {
  return builder.node('Gather', [hidden, builder.ints([0], [])], { axis: 1 });
}
