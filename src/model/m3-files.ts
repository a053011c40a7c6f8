/** Owns the two linear layers that models in the form of bge-m3 keep beside their encoder. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { readTensor } from './weights/tensor-file.ts';
import type { TensorSource } from './weights/tensor-file.ts';
import type { DenseStep } from './vector-steps.ts';

/** Weight and bias of a linear layer. */
export interface LinearSource {
  readonly weight: TensorSource;
  readonly bias: TensorSource;
}

/** The layers that a folder has. */
export interface M3Layers {
  /** From a row to the weight of its token. */
  readonly lexical: LinearSource | null;
  /** From a row to that of the multi-vector. */
  readonly rows: DenseStep | null;
}

async function findLayer(folder: string, name: string): Promise<LinearSource | null> {
  for (const file of [`${name}.safetensors`, `${name}.pt`]) {
    const path = join(folder, file);
    const isThere = await stat(path).then(
      () => true,
      () => false,
    );
    if (isThere) return { weight: { path, name: 'weight' }, bias: { path, name: 'bias' } };
  }
  return null;
}

/**
 * The layers of a folder; null for those that it has not.
 * @throws ConfigurationError where a file is damaged
 * @source FlagEmbedding, `BGEM3FlagModel`: `sparse_linear.pt`, `colbert_linear.pt`
 */
export async function readM3Layers(folder: string, hiddenSize: number): Promise<M3Layers> {
  const lexical = await findLayer(folder, 'sparse_linear');
  const source = await findLayer(folder, 'colbert_linear');
  if (source === null) return { lexical, rows: null };
  const { shape } = await readTensor(source.weight);
  const outFeatures = shape[0] ?? 0;
  return {
    lexical,
    rows: { kind: 'dense', inFeatures: hiddenSize, outFeatures, ...source, activation: 'identity', residual: 'none' },
  };
}
