/** Owns the steps that turn an encoder's rows into a vector or into other rows, and the widths they give. */
import type { Activation } from '../kernels/dense/activations.ts';
import type { TensorSource } from './weights/tensor-file.ts';

/** How token rows become one vector. */
export type PoolingMode = 'cls' | 'max' | 'mean' | 'meanSqrtLen' | 'weightedMean' | 'lastToken';

/** A linear layer with an activation and, where there is one, a way around it. */
export interface DenseStep {
  readonly kind: 'dense';
  readonly inFeatures: number;
  readonly outFeatures: number;
  /** @shape [outFeatures, inFeatures] */
  readonly weight: TensorSource;
  readonly bias: TensorSource | null;
  readonly activation: Activation;
  /** What is added to the result: nothing, the input, or the input through a second matrix. */
  readonly residual: 'none' | 'input' | TensorSource;
}

/** One step after the encoder. */
export type VectorStep =
  | { readonly kind: 'pool'; readonly modes: readonly PoolingMode[] }
  | DenseStep
  | { readonly kind: 'layerNorm'; readonly width: number; readonly weight: TensorSource; readonly bias: TensorSource }
  | { readonly kind: 'normalize' };

/** A step's width that does not fit what comes before it. */
export interface WidthMismatch {
  readonly expected: number;
  readonly found: number;
}

/** The width after all steps, or the first step that does not fit. */
export function widthAfter(steps: readonly VectorStep[], width: number): number | WidthMismatch {
  let current = width;
  for (const step of steps) {
    const expected = step.kind === 'dense' ? step.inFeatures : step.kind === 'layerNorm' ? step.width : current;
    if (expected !== current) return { expected, found: current };
    if (step.kind === 'dense') current = step.outFeatures;
    if (step.kind === 'pool') current *= step.modes.length;
  }
  return current;
}

/** The name of the pooling among the steps, such as `cls+max`; null where nothing is pooled. */
export function poolingLabel(steps: readonly VectorStep[]): string | null {
  const pool = steps.find((step) => step.kind === 'pool');
  return pool?.kind === 'pool' ? pool.modes.join('+') : null;
}

/** A weight of a step, and the shape that the step states for it. */
export interface StepTensor {
  readonly source: TensorSource;
  readonly shape: readonly number[];
}

function denseTensors({ inFeatures, outFeatures, weight, bias, residual }: DenseStep): StepTensor[] {
  const matrices = typeof residual === 'string' ? [weight] : [weight, residual];
  return [
    ...matrices.map((source) => ({ source, shape: [outFeatures, inFeatures] })),
    ...(bias === null ? [] : [{ source: bias, shape: [outFeatures] }]),
  ];
}

/** The weights that the steps need, each once. */
export function tensorsOf(steps: readonly VectorStep[]): StepTensor[] {
  return steps.flatMap((step): StepTensor[] => {
    if (step.kind === 'layerNorm') return [step.weight, step.bias].map((source) => ({ source, shape: [step.width] }));
    return step.kind === 'dense' ? denseTensors(step) : [];
  });
}
