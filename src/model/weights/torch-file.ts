/** Owns the reading of tensors from a small PyTorch file: a closed set of instructions, nothing in it is executed. */
import { readFile } from 'node:fs/promises';
import { formatBytes, toFloats } from './number-formats.ts';
import type { NumberFormat } from './number-formats.ts';
import { readPickle } from './pickle.ts';
import type { PickleCall } from './pickle.ts';
import type { TensorValues } from './safetensors.ts';
import { readStoredZip } from './stored-zip.ts';

/** Largest file that is read: heads are small, whole models come as safetensors. @unit bytes */
const maxFileBytes = 64 * 1024 * 1024;

/** Number formats by the storage class that the file names. */
const storageFormats: Readonly<Record<string, NumberFormat>> = {
  'torch.DoubleStorage': 'f64',
  'torch.FloatStorage': 'f32',
  'torch.HalfStorage': 'f16',
  'torch.BFloat16Storage': 'bf16',
};

const isCall = (value: unknown, name: string): value is PickleCall =>
  typeof value === 'object' && value !== null && 'call' in value && value.call === name;

const numbersOf = (value: unknown): number[] => (Array.isArray(value) ? value.map(Number) : []);

/** Strides of a tensor whose rows follow each other without a gap. */
const packedStrides = (shape: readonly number[]): number[] =>
  shape.map((_, axis) => shape.slice(axis + 1).reduce((product, length) => product * length, 1));

function readTensor(entries: ReadonlyMap<string, Uint8Array>, root: string, value: unknown): TensorValues {
  if (!isCall(value, 'torch._utils._rebuild_tensor_v2')) throw new Error('holds something that is not a tensor');
  const [storage, offset, shapeValue, stridesValue] = value.arguments;
  const parts = isCall(storage, 'persistent id') && Array.isArray(storage.arguments[0]) ? storage.arguments[0] : [];
  const [kind, storageClass, key] = parts as readonly unknown[];
  const format = storageFormats[isCall(storageClass, 'class') ? String(storageClass.arguments[0]) : ''];
  const bytes = entries.get(`${root}data/${String(key)}`);
  if (kind !== 'storage' || format === undefined || bytes === undefined) throw new Error('holds an unknown storage');
  const shape = numbersOf(shapeValue);
  const strides = numbersOf(stridesValue);
  const expected = packedStrides(shape);
  if (!shape.every((length, axis) => length === 1 || strides[axis] === expected[axis])) {
    throw new Error('holds a tensor with gaps');
  }
  const count = shape.reduce((product, length) => product * length, 1);
  const start = Number(offset) * formatBytes[format];
  const values = toFloats(bytes.subarray(start, start + count * formatBytes[format]), format);
  if (values.length !== count) throw new Error('is cut off');
  return { shape, values };
}

/** One tensor of a state dictionary that `torch.save` wrote. Throws where the file holds anything else. */
export async function readTorchTensor(path: string, name: string): Promise<TensorValues> {
  const bytes = await readFile(path);
  if (bytes.byteLength > maxFileBytes) throw new Error(`is larger than ${String(maxFileBytes)} bytes`);
  const entries = readStoredZip(bytes);
  const dataName = [...entries.keys()].find((entry) => entry.endsWith('/data.pkl'));
  const data = dataName === undefined ? undefined : entries.get(dataName);
  if (dataName === undefined || data === undefined) throw new Error('is no PyTorch file');
  const state = readPickle(data);
  if (!(state instanceof Map) || !state.has(name)) throw new Error(`has no tensor ${name}`);
  return readTensor(entries, dataName.slice(0, -'data.pkl'.length), state.get(name));
}
