/** Owns what a graph file will say about itself once it is converted. */
import { ConfigurationError } from '../../errors.ts';
import { describeModel } from '../../kernels/onnx/read.ts';
import type { GraphDescription } from '../../kernels/onnx/read.ts';
import { openModel } from './open-model.ts';
import type { OpenModel } from './open-model.ts';
import { convert } from './steps.ts';
import type { ConversionStep } from './steps.ts';

/**
 * What an open model says about itself as it now is.
 * @throws ConfigurationError naming its file where it has no outputs or no operator set
 */
export function describeOpen({ path, model }: OpenModel): GraphDescription {
  try {
    return describeModel(model);
  } catch {
    throw new ConfigurationError([`${path}: is no complete ONNX model: cut off or damaged, get it again`]);
  }
}

/**
 * What the graph in a file says about itself after these steps; no weight is read for it.
 * Its files with weights are those of the file as it is: they decide what is served, wherever a step moves the weights.
 * @throws ConfigurationError naming the file where it is cut off, no ONNX model, or cannot be converted so
 */
export function describeConverted(path: string, steps: readonly ConversionStep[]): GraphDescription {
  const open = openModel(path);
  const { externalFiles } = describeOpen(open);
  convert(open, steps);
  return { ...describeOpen(open), externalFiles };
}
