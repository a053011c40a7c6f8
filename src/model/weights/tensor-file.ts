/** Owns the choice of how a tensor beside the graph is read: by the kind of the file that holds it. */
import { extname } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { fileErrorCode } from '../json-file.ts';
import { readSafetensor } from './safetensors.ts';
import type { TensorValues } from './safetensors.ts';
import { readTorchTensor } from './torch-file.ts';

/** Where a tensor lies. */
export interface TensorSource {
  /** File, absolute. */
  readonly path: string;
  readonly name: string;
}

/** Tensors by where they lie. */
export type LoadedTensors = ReadonlyMap<string, TensorValues>;

/** The key of a tensor among loaded ones. */
export const tensorKey = ({ path, name }: TensorSource): string => `${path}#${name}`;

/**
 * One tensor, as float32.
 * @throws ConfigurationError naming the file where it is missing, damaged or of a kind that is not read
 */
export async function readTensor({ path, name }: TensorSource): Promise<TensorValues> {
  const read = { '.safetensors': readSafetensor, '.pt': readTorchTensor }[extname(path)];
  if (read === undefined) throw new ConfigurationError([`${path}: weights are read from safetensors files only`]);
  try {
    return await read(path, name);
  } catch (error) {
    const code = fileErrorCode(error);
    const reason = error instanceof Error ? error.message : 'cannot be read';
    throw new ConfigurationError([`${path}: ${code === '' ? reason : `cannot be read (${code})`}`]);
  }
}

/**
 * All tensors, each read once.
 * @throws ConfigurationError
 */
export async function readTensors(sources: readonly TensorSource[]): Promise<LoadedTensors> {
  const tensors = new Map<string, TensorValues>();
  for (const source of sources) {
    const key = tensorKey(source);
    if (!tensors.has(key)) tensors.set(key, await readTensor(source));
  }
  return tensors;
}

/** The tensor of a source that was loaded before. */
export function loadedTensor(tensors: LoadedTensors, source: TensorSource): TensorValues {
  const tensor = tensors.get(tensorKey(source));
  if (tensor === undefined) throw new Error(`the tensor ${tensorKey(source)} was not loaded`);
  return tensor;
}
