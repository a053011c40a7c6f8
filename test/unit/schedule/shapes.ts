/** Owns shapes of batches for tests: the real ones, of models and costs that are easy to reckon with. */
import { batchShape, type BatchShape } from '../../../src/device/batch-shape.ts';
import type { BatchLimits } from '../../../src/device/budget.ts';
import type { RunCost } from '../../../src/device/cost-model.ts';
import type { Head, ModelLoad, ProviderName, RunPolicy } from '../../../src/executor/protocol.ts';

/** What tells a shape from another. */
export interface ShapeOptions {
  readonly kind: RunPolicy['kind'];
  readonly limits: BatchLimits;
  readonly cost?: RunCost;
  readonly provider?: ProviderName;
  readonly fixedBatch?: number | null;
  readonly head?: Head;
}

/** A millisecond for each token, and nothing for a run. */
export const msPerToken: RunCost = { fixedMs: 0, tokenMs: 1, squaredTokenMs: 0 };

/** The shape of a model of the given kind. */
export function shapeOf(options: ShapeOptions): BatchShape {
  const { kind, limits, cost = msPerToken, provider = 'cpu', fixedBatch = null, head = 'dense' } = options;
  const load: ModelLoad = {
    modelId: 'm',
    graphPath: 'model.onnx',
    heads: ['dense', 'sparse', 'rows', 'logit', 'maxSim'],
    vocabularySize: 100,
    maxTokens: 512,
    precision: 'fp32',
    maxSimGraphPath: null,
    runPolicy: { kind, fixedBatch, fixedTokens: null },
    positionPadId: null,
    sparse: null,
  };
  return batchShape({ load, head, provider, limits, cost, drift: 1 });
}
