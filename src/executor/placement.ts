/** Owns where the nodes of an executor's models run: what must go to the CPU, and what went there by itself. */
import { foreignNodesOf, readPlacementLog } from './placement-log.ts';
import type { GraphPlacement } from './placement-log.ts';
import { runProbe } from './placement-probe.ts';
import type { ProbedGraph } from './placement-probe.ts';
import type { ModelLoad, NodePlacement, ProviderChoice, ProviderName } from './protocol.ts';

/** As the engine calls them. */
const providerNames: Readonly<Record<ProviderName, string>> = {
  cpu: 'CPUExecutionProvider',
  webgpu: 'WebGpuExecutionProvider',
  cuda: 'CUDAExecutionProvider',
};

/**
 * Operators that are right on the CPU only. They see positions and masks, so that they cost little there.
 * `Sin` and `Cos` are off by 2^-11 on WebGPU at best, and by anything beyond a half turn, which is where rotary positions
 * are. Of `And`, `Or` and `Xor` the engine compiles one shader for operands that are read by one and by four: a causal
 * mask that came after the mask of another model in the same process let every token see all others.
 * @source WGSL, accuracy of built-in functions; onnxruntime 1.30, cache hint of BinaryElementwise in mode V
 */
const wrongOnWebgpu: ReadonlySet<string> = new Set(['Sin', 'Cos', 'And', 'Or', 'Xor']);

/** Nodes of each model that are to run on the CPU, by the model's id. */
export type CpuNodes = ReadonlyMap<string, readonly string[]>;

/** Where the models are to run and do run. */
export interface Placement {
  /** The provider that has any node at all. */
  readonly executionProvider: ProviderName;
  readonly placements: readonly NodePlacement[];
  readonly cpuNodes: CpuNodes;
}

/** What is tried: the models, and on what. */
export interface PlacementQuestion {
  readonly models: readonly ModelLoad[];
  readonly threads: number;
  readonly provider: ProviderChoice;
}

/**
 * The placement of every model, as the engine logs it in a process that is thrown away.
 * @throws Error that names the model and what it lacks
 */
export async function placeModels(question: PlacementQuestion): Promise<Placement> {
  const { models, provider } = question;
  // On the CPU there is nowhere else that a node could go.
  if (provider.name === 'cpu') {
    const placements = models.map(({ modelId }) => ({ modelId, foreignNodes: [] }));
    return { executionProvider: 'cpu', placements, cpuNodes: new Map() };
  }
  const free = await probe(question, new Map());
  const cpuNodes = provider.name === 'webgpu' ? wrongNodes(free) : new Map<string, string[]>();
  const placed = cpuNodes.size === 0 ? free : await probe(question, cpuNodes);
  const name = providerNames[provider.name];
  return {
    executionProvider: placed.some(({ placement }) => placement.counts.has(name)) ? provider.name : 'cpu',
    placements: models.map(({ modelId }) => ({
      modelId,
      foreignNodes: placed
        .filter((graph) => graph.modelId === modelId)
        .flatMap(({ placement }) => foreignNodesOf(placement, name)),
    })),
    cpuNodes,
  };
}

interface PlacedGraph {
  readonly modelId: string;
  readonly placement: GraphPlacement;
}

async function probe(question: PlacementQuestion, cpuNodes: CpuNodes): Promise<PlacedGraph[]> {
  const graphs = graphsOf(question, cpuNodes);
  const logged = readPlacementLog(await runProbe(graphs));
  return graphs.map(({ logId, modelId, path }) => {
    const placement = logged.get(logId);
    if (placement === undefined) throw new Error(`Model ${modelId} (${path}): the engine did not say what runs where`);
    return { modelId, placement };
  });
}

function graphsOf({ models, threads, provider }: PlacementQuestion, cpuNodes: CpuNodes): ProbedGraph[] {
  return models
    .flatMap(({ modelId, graphPath, maxSimGraphPath, precision }) => {
      const own = { modelId, path: graphPath, precision, threads, provider, cpuNodes: cpuNodes.get(modelId) ?? [] };
      if (maxSimGraphPath === null) return [own];
      return [own, { ...own, path: maxSimGraphPath, precision: 'fp32' as const, cpuNodes: [] }];
    })
    .map((graph, index) => ({ ...graph, logId: `graph${index}` }));
}

/** A node without a name cannot be told to the engine. */
function wrongNodes(placed: readonly PlacedGraph[]): Map<string, string[]> {
  const wrong = new Map<string, string[]>();
  for (const { modelId, placement } of placed) {
    const nodes = placement.nodes.filter(
      ({ name, operator, provider }) => provider === providerNames.webgpu && wrongOnWebgpu.has(operator) && name !== '',
    );
    if (nodes.length > 0) wrong.set(modelId, [...(wrong.get(modelId) ?? []), ...nodes.map(({ name }) => name)]);
  }
  return wrong;
}
