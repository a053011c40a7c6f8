/** Owns the words for what is done to a model's weights before it is served. */
import type { ConversionStep } from './convert/steps.ts';

const words: Readonly<Record<ConversionStep, string>> = {
  widen: 'float16 weights are widened to float32',
  narrow: 'float32 weights are narrowed to float16',
  expandAttention: 'fused attention is written out',
  fitCpu: 'fused operators take the form that a CPU runs fastest',
  quantize: 'float32 weights are quantised to int8, because there is no int8 graph file',
};

/** What the steps do, in order, for a person; nothing where the graph file is served as it is. */
export const describeConversion = (steps: readonly ConversionStep[]): string[] => steps.map((step) => words[step]);
