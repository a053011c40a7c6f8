/** Owns the reading of the engine's own log: which execution provider each node of a graph was given to. */

/** A node of an optimised graph. */
export interface PlacedNode {
  readonly name: string;
  readonly operator: string;
  /** Such as `CPUExecutionProvider`. */
  readonly provider: string;
}

/** Where the nodes of one graph went. */
export interface GraphPlacement {
  /** Nodes of each provider. */
  readonly counts: ReadonlyMap<string, number>;
  /** Those nodes that are named: all of them, unless one provider has all. */
  readonly nodes: readonly PlacedNode[];
}

const entryPattern = /\[[A-Z]:onnxruntime:([^,\]]*), [^\]]*\] +(.*)$/;
const headingPattern = /^(All nodes|Node\(s\)) placed on \[(\w+)\]\. Number of nodes: (\d+)/;
const nodePattern = /^(\S+) \((.*)\)$/;

/**
 * The placement that each session logged, by the session's log id. A graph that is cut off is left out: that every
 * node of a heading follows is what makes the rest believable.
 * @param log of sessions that were created one after the other at severity 0 and verbosity 1 or more
 */
export function readPlacementLog(log: string): ReadonlyMap<string, GraphPlacement> {
  const placements = new Map<string, { counts: Map<string, number>; nodes: PlacedNode[] }>();
  const incomplete = new Set<string>();
  let open: { readonly id: string; readonly provider: string; left: number } | null = null;
  for (const line of log.split('\n')) {
    const [, id, text = ''] = entryPattern.exec(line.trimEnd()) ?? [];
    if (id === undefined) continue;
    if (open !== null && open.left > 0) {
      const [, operator, name] = nodePattern.exec(text) ?? [];
      if (operator === undefined || name === undefined || id !== open.id) {
        incomplete.add(open.id);
        open = null;
      } else {
        open.left--;
        placements.get(id)?.nodes.push({ name, operator, provider: open.provider });
        continue;
      }
    }
    const [, kind, provider, count] = headingPattern.exec(text) ?? [];
    if (provider === undefined) continue;
    const placement = placements.get(id) ?? { counts: new Map<string, number>(), nodes: [] };
    placements.set(id, placement);
    placement.counts.set(provider, Number(count));
    open = { id, provider, left: kind === 'All nodes' ? 0 : Number(count) };
  }
  if (open !== null && open.left > 0) incomplete.add(open.id);
  return new Map([...placements].filter(([id]) => !incomplete.has(id)));
}

/**
 * Operators that compute on whole activations: products, attention, normalisation, activation, softmax, reductions,
 * quantisation. What is left is arithmetic on shapes, masks and positions, which costs nothing wherever it runs.
 */
const computeOperator =
  /MatMul|Gemm|Conv|Einsum|Attention|Norm|Softmax|Gelu|Relu|Elu|Silu|Swish|Mish|Sigmoid|Tanh|Erf|Softplus|^Reduce|Quantize|TopK|RotaryEmbedding|MoE|LSTM|GRU/i;

/** The nodes of a graph that compute and are not on `provider`, each as `name (operator)`. */
export function foreignNodesOf({ nodes, counts }: GraphPlacement, provider: string): string[] {
  const foreign = nodes.filter((node) => node.provider !== provider && computeOperator.test(node.operator));
  const named = foreign.map(({ name, operator }) => `${name} (${operator})`);
  // A log that names no node says that one provider has them all.
  const elsewhere = nodes.length === 0 ? [...counts].filter(([name]) => name !== provider) : [];
  return [...named, ...elsewhere.map(([name, count]) => `all ${count} nodes (${name})`)];
}
