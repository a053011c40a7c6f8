/** Owns which output of a graph each head starts from: by name where exporters agree on one, else by shape. */
import { elementTypes } from '../kernels/onnx/builder.ts';
import type { Shape } from '../kernels/onnx/builder.ts';
import type { GraphDescription, GraphValue } from '../kernels/onnx/read.ts';
import type { AddedHead } from '../executor/protocol.ts';
import type { ModelManifest } from './manifest.ts';
import { widthAfter } from './vector-steps.ts';

/** A head that is added to a model's graph. */
export type GraphHead = Exclude<AddedHead, 'maxSim'>;

/** What decides where a head starts. */
export type SourceFacts = Pick<
  ModelManifest,
  'hiddenSize' | 'vocabularySize' | 'dimension' | 'rowDimension' | 'vectorSteps' | 'rowSteps' | 'sparse' | 'yesNo'
> & { readonly positiveLabel: number | null };

/** An output that a head can start from. */
export interface WantedOutput {
  /** Names of the usual exporters, the preferred one first. */
  readonly names: readonly string[];
  readonly shape: Shape;
  /** Whether an output of another name will do where it alone has the shape. */
  readonly mayHaveAnyName: boolean;
  /** Whether the steps behind the encoder are in the graph already. */
  readonly isComplete: boolean;
}

/** An output, and whether the steps behind the encoder are in the graph already. */
export interface HeadSource {
  readonly output: GraphValue;
  readonly isComplete: boolean;
}

/** Outputs of graphs that give all three results of bge-m3. @source aapot/bge-m3-onnx */
export const graphOutputs = { vector: 'dense_vecs', tokenWeights: 'sparse_vecs', m3Rows: 'colbert_vecs' } as const;

/** Names of an encoder's rows. */
const rowNames = ['last_hidden_state', 'token_embeddings', 'hidden_states', 'output_0', 'contextual', 'output'];

const wanted = (names: readonly string[], shape: Shape, isComplete = false, mayHaveAnyName = true): WantedOutput => ({
  names,
  shape,
  isComplete,
  mayHaveAnyName,
});

/** Rows of the usual exporters' names. */
const rows = (width: number, isComplete: boolean): WantedOutput =>
  wanted(rowNames, ['batch', 'sequence', width], isComplete);

/** What each head can start from, the preferred one first. */
export function wantedOutputs(head: GraphHead, facts: SourceFacts): WantedOutput[] {
  const vocabulary = wanted(['logits', 'output'], ['batch', 'sequence', facts.vocabularySize]);
  switch (head) {
    case 'dense': {
      // A vector of another name may be BERT's pooler, which no embedding model means.
      const vector = wanted(['sentence_embedding', graphOutputs.vector], ['batch', facts.dimension], true, false);
      return [...(facts.vectorSteps.length > 0 ? [rows(facts.hiddenSize, false)] : []), vector];
    }
    case 'rows':
      return [
        wanted([graphOutputs.m3Rows], ['batch', 'sequence', facts.rowDimension], true, false),
        ...(widthAfter(facts.rowSteps, facts.hiddenSize) === facts.rowDimension ? [rows(facts.hiddenSize, false)] : []),
        ...(facts.rowDimension === facts.hiddenSize ? [] : [rows(facts.rowDimension, true)]),
      ];
    case 'sparse':
      if (facts.sparse?.form !== 'tokens') return [vocabulary];
      return [
        facts.sparse.layer === null
          ? wanted([graphOutputs.tokenWeights], ['batch', 'sequence', 1], true, false)
          : rows(facts.hiddenSize, false),
      ];
    case 'logit':
      return [
        facts.yesNo === null
          ? wanted(['logits', 'scores', 'output'], ['batch', facts.positiveLabel === null ? 1 : 2])
          : vocabulary,
      ];
  }
}

/** Whether an output can have a shape; one that the file leaves free fits every length. */
function hasShape({ shape }: GraphValue, wanted: Shape): boolean {
  if (shape?.length !== wanted.length) return false;
  const [width, wantedWidth] = [shape.at(-1), wanted.at(-1)];
  return typeof width !== 'number' || width === wantedWidth;
}

/** Whether the heads can read the values of an output. */
export const holdsFloats = ({ elementType }: GraphValue): boolean =>
  ([0, elementTypes.float32, elementTypes.float16] as number[]).includes(elementType);

/** The output that is wanted: the first of the names that fits, else the only one of the shape. */
function findOutput(graph: GraphDescription, wanted: WantedOutput): GraphValue | null {
  const fitting = graph.outputs.filter(
    (output) =>
      holdsFloats(output) &&
      (output.shape === null || hasShape(output, wanted.shape)) &&
      // Rows that have been through a layer of their own are no encoder's.
      (output.name !== graphOutputs.m3Rows || wanted.names.includes(output.name)),
  );
  const named = wanted.names.map((name) => fitting.find((output) => output.name === name));
  const first = named.find((output) => output !== undefined);
  if (first !== undefined || !wanted.mayHaveAnyName) return first ?? null;
  const shaped = fitting.filter(({ shape }) => shape !== null);
  return shaped.length === 1 ? (shaped[0] ?? null) : null;
}

/** The output with the encoder's own rows, one for each token; null where the graph has none. */
export const hiddenSource = (
  graph: GraphDescription,
  { hiddenSize }: Pick<SourceFacts, 'hiddenSize'>,
): GraphValue | null => findOutput(graph, rows(hiddenSize, false));

/** The output that a head starts from; null where the graph has none. */
export function headSource(graph: GraphDescription, head: GraphHead, facts: SourceFacts): HeadSource | null {
  for (const wanted of wantedOutputs(head, facts)) {
    const output = findOutput(graph, wanted);
    if (output !== null) return { output, isComplete: wanted.isComplete };
  }
  return null;
}
