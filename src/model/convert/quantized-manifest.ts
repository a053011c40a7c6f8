/** Owns the manifest of a model that is to be quantised. */
import type { ModelManifest } from '../manifest.ts';
import { runPolicyOf } from '../run-policy.ts';
import { describeConverted } from './describe.ts';
import { isWeightStep } from './steps.ts';
import type { ConversionStep } from './steps.ts';

/**
 * The int8 form of a model that is served in float32.
 * @throws ConfigurationError where its graph cannot be converted
 */
export function quantizedManifest(model: ModelManifest): ModelManifest {
  const before = (model.conversion ?? []).filter(isWeightStep);
  const conversion: ConversionStep[] = [...before, 'expandAttention', 'quantize'];
  const runPolicy = runPolicyOf(describeConverted(model.graphPath, conversion));
  return { ...model, precision: 'int8', conversion, runPolicy };
}
