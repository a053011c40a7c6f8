/** Owns the conversions that a model goes through on its way to a device, and their names. */
import { expandAttention } from './attention.ts';
import { fitCpu } from './fit-cpu.ts';
import { narrow } from './narrow.ts';
import type { OpenModel } from './open-model.ts';
import { quantize } from './quantize.ts';
import { widen } from './widen.ts';

/**
 * One conversion: `widen` float16 to float32, `narrow` float32 to float16, `expandAttention` the fused operator into
 * one that takes its mask as a bias, `fitCpu` fused operators to what a CPU runs faster in float32, `quantize` float32 to
 * int8 weights.
 */
export type ConversionStep = 'widen' | 'narrow' | 'expandAttention' | 'fitCpu' | 'quantize';

/** Steps that leave the weights alone and change how a device computes with them. */
const formSteps: ReadonlySet<ConversionStep> = new Set(['expandAttention', 'fitCpu']);

/** Whether a step makes another precision of the weights. */
export const isWeightStep = (step: ConversionStep): boolean => !formSteps.has(step);

interface Recipe {
  /** Raised with every change of what comes out, so that no file of an older recipe is taken for a new one. */
  readonly version: number;
  readonly apply: (open: OpenModel) => void;
}

const recipes: Readonly<Record<ConversionStep, Recipe>> = {
  widen: { version: 1, apply: widen },
  narrow: { version: 1, apply: narrow },
  expandAttention: { version: 1, apply: expandAttention },
  fitCpu: { version: 1, apply: fitCpu },
  quantize: { version: 1, apply: quantize },
};

/** The steps with the versions of their recipes, for the name of a file. */
export const recipeName = (steps: readonly ConversionStep[]): string =>
  steps.map((step) => `${step}${String(recipes[step].version)}`).join('-');

/**
 * Takes an open model through the steps, in their order.
 * @throws ConfigurationError where a step cannot be done
 */
export function convert(open: OpenModel, steps: readonly ConversionStep[]): void {
  for (const step of steps) recipes[step].apply(open);
}

/** What was done to the weights, as an identity names it, such as `fp16->fp32`; `precision` where nothing was. */
export function precisionLabel(precision: string, steps: readonly ConversionStep[]): string {
  if (steps.includes('quantize')) return `${precision}(quantized)`;
  if (steps.includes('widen')) return `fp16->${precision}`;
  if (steps.includes('narrow')) return `fp32->${precision}`;
  return precision;
}

/** The steps up to the one that quantises, which make a file of their own, and what is done to that file. */
export function splitAtQuantize(steps: readonly ConversionStep[]): {
  readonly first: readonly ConversionStep[];
  readonly rest: readonly ConversionStep[];
} {
  const end = steps.indexOf('quantize') + 1;
  return { first: steps.slice(0, end), rest: steps.slice(end) };
}
