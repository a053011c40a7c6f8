/** Owns the token rows of a multi-vector as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { normalize } from '../normalize/graph.ts';

/**
 * Every token row scaled to length 1. Rows of padding come along: who asked for the run knows which they are.
 * @shape f32 [batch, sequence, hidden] -> f32 [batch, sequence, hidden]
 * @source ColBERT (Khattab and Zaharia 2020), section 3.2
 */
export function lateInteraction(builder: GraphBuilder, hidden: string): string {
  return normalize(builder, hidden);
}
