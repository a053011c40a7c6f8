/** Owns the tables that a graph looks its tokens and their positions up in: how many rows each has. */
import type { GraphProto, NodeProto } from './onnx_pb.ts';

/** Rows of the tables; null where the graph does not show one. */
export interface TableRows {
  readonly tokens: number | null;
  readonly positions: number | null;
}

/** Operators that hand a tensor's values on, in another type or shape. */
const passing: ReadonlySet<string> = new Set(['Cast', 'Flatten', 'Identity', 'Reshape', 'Squeeze', 'Unsqueeze']);

/** The same, where a table is kept in a narrower type. */
const passingTable: ReadonlySet<string> = new Set(['Cast', 'DequantizeLinear', 'Identity']);

/** Fewer rows are no positions: tables of segments have one, two or a few. */
const minPositionRows = 16;

/** The tensor that a name stands for, behind all operators that only pass it on. */
function sourceOf(name: string, producers: ReadonlyMap<string, NodeProto>, operators: ReadonlySet<string>): string {
  let source = name;
  for (let node = producers.get(source); node !== undefined && operators.has(node.opType); node = producers.get(source))
    source = node.input[0] ?? '';
  return source;
}

/**
 * The table that `input_ids` picks rows of, and the largest one of the same width that neither they nor the segments do.
 */
export function tableRowsOf(graph: GraphProto): TableRows {
  const producers = new Map(graph.node.flatMap((node) => node.output.map((name) => [name, node] as const)));
  const shapes = new Map(graph.initializer.map(({ name, dims }) => [name, dims.map(Number)] as const));
  const lookUps = graph.node
    .filter(({ opType }) => opType === 'Gather')
    .filter(({ attribute }) => attribute.every(({ name, i }) => name !== 'axis' || i === 0n))
    .flatMap(({ input: [data = '', indices = ''] }) => {
      const [rows, width, ...others] = shapes.get(sourceOf(data, producers, passingTable)) ?? [];
      if (rows === undefined || width === undefined || others.length > 0) return [];
      return [{ rows, width, by: sourceOf(indices, producers, passing) }];
    });
  const tokens = lookUps.find(({ by }) => by === 'input_ids');
  const positions = lookUps
    .filter(({ by, width }) => width === tokens?.width && by !== 'input_ids' && by !== 'token_type_ids')
    .map(({ rows }) => rows)
    .filter((rows) => rows >= minPositionRows);
  return { tokens: tokens?.rows ?? null, positions: positions.length === 0 ? null : Math.max(...positions) };
}
