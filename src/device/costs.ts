/** Owns what one device knows of how long its models take: from the store, or from the timings of its executors. */
import type { Head, HeadTimings, ModelHead, ModelLoad, ProviderName } from '../executor/protocol.ts';
import { fitRunCost, type RunCost } from './cost-model.ts';
import type { CostStore } from './cost-store.ts';

/** The costs of the models of a device. */
export interface DeviceCosts {
  /** null where nothing was timed yet. */
  readonly costOf: (modelId: string, head: Head) => RunCost | null;
  /** Heads that need not be timed again. */
  readonly timedHeads: () => readonly ModelHead[];
  /** Fits what an executor has timed. */
  readonly onTimings: (timings: readonly HeadTimings[]) => void;
}

/** What costs depend on beside the model. */
export interface CostFacts {
  readonly models: readonly ModelLoad[];
  readonly deviceId: string;
  readonly deviceName: string;
  readonly provider: ProviderName;
  readonly threads: number;
}

/**
 * A MaxSim sum is a product of few rows beside the encoder's pass that gives them, and pooling is little beside the
 * pass that gives the encoder's own rows.
 */
const stoodFor: Partial<Record<Head, Head>> = { maxSim: 'rows', hidden: 'dense' };
const timedHead = (head: Head): Head => stoodFor[head] ?? head;

/** The costs of a device, kept in `store`. */
export function createDeviceCosts(store: CostStore, { models, ...facts }: CostFacts): DeviceCosts {
  const keyOf = ({ modelId, graphPath, precision }: ModelLoad, head: Head) => ({
    ...facts,
    modelId,
    graphPath,
    precision,
    head,
  });
  /** Asked for with every batch: the store makes a key of a dozen values for each answer. */
  const known = new Map<string, Map<Head, RunCost | null>>(models.map(({ modelId }) => [modelId, new Map()]));
  const costOf: DeviceCosts['costOf'] = (modelId, head) => {
    const heads = known.get(modelId);
    let cost = heads?.get(head);
    if (cost !== undefined) return cost;
    const model = models.find((each) => each.modelId === modelId);
    cost = model === undefined ? null : store.get(keyOf(model, timedHead(head)));
    heads?.set(head, cost);
    return cost;
  };
  return {
    costOf,
    timedHeads: () =>
      models.flatMap(({ modelId, heads }) =>
        heads.flatMap((head) => (costOf(modelId, head) === null ? [] : [{ modelId, head }])),
      ),
    onTimings(timings) {
      for (const { modelId, head, timings: runs } of timings) {
        const model = models.find((each) => each.modelId === modelId);
        const cost = fitRunCost(runs);
        if (model === undefined || cost === null) continue;
        store.put(keyOf(model, head), cost);
        known.get(modelId)?.clear();
      }
    },
  };
}
