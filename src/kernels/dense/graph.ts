/** Owns a linear layer with an activation as an ONNX sub-graph. */
import type { GraphBuilder } from '../onnx/builder.ts';
import { activate } from './activations.ts';
import type { Activation } from './activations.ts';

/** A matrix as linear layers store it: one row for each output. */
export interface LayerMatrix {
  readonly outFeatures: number;
  readonly inFeatures: number;
  /** @shape f32 [outFeatures x inFeatures] */
  readonly values: ArrayLike<number>;
}

/** A linear layer. */
export interface DenseLayer {
  readonly weight: LayerMatrix;
  /** @shape f32 [outFeatures] */
  readonly bias: ArrayLike<number> | null;
  readonly activation: Activation;
  /** What is added to the result: nothing, the input, or the input through a second matrix. */
  readonly residual: 'none' | 'input' | LayerMatrix;
}

/** The matrix as a constant whose columns are the outputs, so that a plain product applies it. */
function columnsConstant(builder: GraphBuilder, { values, inFeatures, outFeatures }: LayerMatrix): string {
  const columns = new Float32Array(inFeatures * outFeatures);
  for (let output = 0; output < outFeatures; output += 1) {
    for (let input = 0; input < inFeatures; input += 1) {
      columns[input * outFeatures + output] = values[output * inFeatures + input] ?? 0;
    }
  }
  return builder.floats(columns, [inFeatures, outFeatures]);
}

/**
 * activation(tensor * transposed weight + bias), plus the residual.
 * @shape f32 [..., inFeatures] -> f32 [..., outFeatures]
 * @source torch.nn.Linear; sentence-transformers, Dense
 */
export function dense(builder: GraphBuilder, tensor: string, layer: DenseLayer): string {
  const product = builder.node('MatMul', [tensor, columnsConstant(builder, layer.weight)]);
  const sum = layer.bias === null ? product : builder.node('Add', [product, builder.floats(layer.bias)]);
  const activated = activate(builder, sum, layer.activation);
  if (layer.residual === 'none') return activated;
  const around =
    layer.residual === 'input' ? tensor : builder.node('MatMul', [tensor, columnsConstant(builder, layer.residual)]);
  return builder.node('Add', [activated, around]);
}
