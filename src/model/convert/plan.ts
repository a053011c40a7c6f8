/** Owns the decision which graph file serves a precision on a device, and what is done to it first. */
import type { DeviceAbilities, GraphVariant } from '../graph-variant.ts';
import type { Precision } from '../manifest.ts';
import type { ConversionStep } from './steps.ts';

/** A file, what it becomes, and the precision that is then served; or the reason why there is none. */
export type PrecisionPlan =
  | { readonly variant: GraphVariant; readonly steps: readonly ConversionStep[]; readonly precision: Precision }
  | { readonly problem: string };

interface Way {
  readonly from: Precision;
  readonly to: Precision;
  readonly steps: readonly ConversionStep[];
}

/** Every way to a precision, the better one first: a file as it is, then one that is converted. */
const ways: readonly Way[] = [
  { from: 'int8', to: 'int8', steps: [] },
  { from: 'fp32', to: 'int8', steps: ['expandAttention', 'quantize'] },
  { from: 'fp16', to: 'int8', steps: ['widen', 'expandAttention', 'quantize'] },
  { from: 'fp16', to: 'fp16', steps: [] },
  { from: 'fp32', to: 'fp16', steps: ['narrow'] },
  { from: 'fp32', to: 'fp32', steps: [] },
  { from: 'fp16', to: 'fp32', steps: ['widen'] },
];

/** The ways that nobody has to ask for: a quantised model is another one, so it is made on demand only. */
function automaticWays({ kind, hasFloat16 }: DeviceAbilities): readonly Way[] {
  const to = (precision: Precision): Way[] =>
    ways.filter((way) => way.to === precision && !way.steps.includes('quantize'));
  return [...(kind === 'cpu' ? to('int8') : hasFloat16 ? to('fp16') : []), ...to('fp32')];
}

/** What a device cannot run at all; null where it can. The CPU provider runs fp16 graphs by converting as it goes. */
function unable({ kind, hasFloat16 }: DeviceAbilities, precision: Precision): string | null {
  if (precision === 'fp16' && kind !== 'cpu' && !hasFloat16) return `this ${kind} device has no fp16: use fp32 or auto`;
  if (precision === 'int8' && kind !== 'cpu')
    return `int8 products run on the cpu only, not on ${kind}: use fp16, fp32 or auto`;
  return null;
}

/** What is done to a graph for the device alone, once its weights have the precision that is served. */
function formSteps(device: DeviceAbilities, { to, steps }: Way, variant: GraphVariant): ConversionStep[] {
  const expands = !hasMaskedAttention(device) && !steps.includes('expandAttention');
  const fits = device.kind === 'cpu' && to === 'fp32' && variant.isSlowOnCpu === true;
  return [...(expands ? (['expandAttention'] as const) : []), ...(fits ? (['fitCpu'] as const) : [])];
}

/** Whether the device runs the fused operator Attention with a mask. */
const hasMaskedAttention = ({ kind }: DeviceAbilities): boolean => kind !== 'webgpu';

/**
 * Which file serves `wanted` on the device, and through which steps; nothing is ever taken instead of what was asked for.
 * `auto` is int8 on a CPU where the model ships it, fp16 where another device computes in it, else fp32.
 * @param available what the model has, of each precision the preferred one first
 */
export function planPrecision(
  available: readonly GraphVariant[],
  wanted: Precision | 'auto',
  device: DeviceAbilities,
): PrecisionPlan {
  const problem = wanted === 'auto' ? null : unable(device, wanted);
  if (problem !== null) return { problem };
  const allowed = wanted === 'auto' ? automaticWays(device) : ways.filter(({ to }) => to === wanted);
  for (const way of allowed) {
    const { from, to, steps } = way;
    const variant = available.find(({ precision }) => precision === from);
    // Who asks for float16 by name is told why it cannot be; nobody else has to do without the model.
    if (wanted === 'auto' && steps.includes('narrow') && variant?.isNarrowable === false) continue;
    if (variant === undefined) continue;
    return { variant, steps: [...steps, ...formSteps(device, way, variant)], precision: to };
  }
  const has = available.length === 0 ? 'none' : available.map(({ path }) => path).join(', ');
  const from = [...new Set(allowed.map((way) => way.from))].join(' or ');
  return { problem: `has no ${from} graph file to serve ${wanted} from on ${device.kind} (there is: ${has})` };
}
