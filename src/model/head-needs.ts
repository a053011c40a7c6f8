/** Owns what the heads of a model need besides its graph, and what an executor must know of them. */
import type { SparseOutput } from '../executor/protocol.ts';
import type { DeviceAbilities } from './graph-variant.ts';
import type { ModelManifest } from './manifest.ts';
import { tensorsOf } from './vector-steps.ts';
import type { StepTensor } from './vector-steps.ts';
import { loadedTensor } from './weights/tensor-file.ts';
import type { LoadedTensors, TensorSource } from './weights/tensor-file.ts';

/** What depends on the device, not on the model. */
export interface HeadOptions {
  /**
   * Terms of a sparse vector that come back sorted beside the full row, where copying the row from the device costs
   * more than sorting it there: 8 KB a text instead of 122 for 30,522 terms. null on a CPU, where sorting added 0.29 ms
   * to a head of 1.76 ms (64 tokens, one thread) and the row stays in the same memory.
   */
  readonly topTerms: number | null;
}

/** Terms that a device sends back before the full row is asked for. @unit terms */
const deviceTopTerms = 1024;

/** What the heads are for a device. */
export const headOptionsFor = ({ kind }: DeviceAbilities): HeadOptions => ({
  topTerms: kind === 'cpu' ? null : deviceTopTerms,
});

type HeadSteps = Pick<ModelManifest, 'heads' | 'vectorSteps' | 'rowSteps'>;

const stepTensors = ({ heads, vectorSteps, rowSteps }: HeadSteps): StepTensor[] => [
  ...(heads.includes('dense') ? tensorsOf(vectorSteps) : []),
  ...(heads.includes('rows') ? tensorsOf(rowSteps) : []),
];

/** The weights that the heads of a model need. */
export function headTensors(model: HeadSteps & Pick<ModelManifest, 'sparse'>): TensorSource[] {
  const { heads, sparse } = model;
  const layer = heads.includes('sparse') && sparse?.form === 'tokens' ? sparse.layer : null;
  return [...stepTensors(model).map(({ source }) => source), ...(layer === null ? [] : [layer.weight, layer.bias])];
}

/** What is wrong with the weights of a model's steps: each has the shape that its step states, by file and name. */
export const shapeProblems = (model: HeadSteps, tensors: LoadedTensors): string[] =>
  stepTensors(model).flatMap(({ source, shape }) => {
    const found = loadedTensor(tensors, source).shape;
    if (found.join() === shape.join()) return [];
    return [
      `${source.path}: ${source.name} has the shape [${found.join(', ')}], its layer states [${shape.join(', ')}]`,
    ];
  });

/** Whether a graph gets outputs with the heaviest terms: not where the row is no longer than they are. */
export const hasTopTerms = (
  { sparse, vocabularySize }: Pick<ModelManifest, 'sparse' | 'vocabularySize'>,
  { topTerms }: HeadOptions,
): boolean => sparse?.form === 'terms' && topTerms !== null && topTerms < vocabularySize;

/** How the output of the sparse head is read; null where the model does not serve it. */
export function sparseOutputOf(model: ModelManifest, options: HeadOptions): SparseOutput | null {
  const { sparse, heads } = model;
  if (sparse === null || !heads.includes('sparse')) return null;
  return {
    form: sparse.form,
    unweightedIds: sparse.form === 'tokens' ? sparse.unweightedIds : [],
    topTerms: hasTopTerms(model, options) ? options.topTerms : null,
  };
}
