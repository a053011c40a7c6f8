/** Owns the reading of single tensors from a safetensors file, without loading the rest of it. */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import { toFloats } from './number-formats.ts';
import type { NumberFormat } from './number-formats.ts';

/** Longest header that is read. @unit bytes */
const maxHeaderBytes = 64 * 1024 * 1024;

/** The number formats of weights, by the names that the files give them. */
const formats: Readonly<Record<string, NumberFormat>> = { F64: 'f64', F32: 'f32', F16: 'f16', BF16: 'bf16' };

const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});

/** A tensor as float32. */
export interface TensorValues {
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

async function readExactly(file: FileHandle, start: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, start + done);
    if (bytesRead === 0) throw new Error('is cut off');
    done += bytesRead;
  }
  return bytes;
}

/**
 * One tensor of a safetensors file. Throws where the file is damaged or has no such tensor.
 * @source https://github.com/huggingface/safetensors, "Format"
 */
export async function readSafetensor(path: string, name: string): Promise<TensorValues> {
  const file = await open(path, 'r');
  try {
    const lengthBytes = await readExactly(file, 0, 8);
    const headerLength = Number(new DataView(lengthBytes.buffer).getBigUint64(0, true));
    if (headerLength > maxHeaderBytes) throw new Error('has no safetensors header');
    const header = JSON.parse(Buffer.from(await readExactly(file, 8, headerLength)).toString('utf8')) as object;
    const entry: unknown = Object.hasOwn(header, name) ? (header as Record<string, unknown>)[name] : undefined;
    if (entry === undefined) throw new Error(`has no tensor ${name}`);
    const {
      dtype,
      shape,
      data_offsets: [start, end],
    } = entrySchema.parse(entry);
    const format = formats[dtype];
    if (format === undefined) throw new Error(`holds ${name} as ${dtype}, which is not supported`);
    const values = toFloats(await readExactly(file, 8 + headerLength + start, end - start), format);
    if (values.length !== shape.reduce((product, length) => product * length, 1)) throw new Error('is damaged');
    return { shape, values };
  } finally {
    await file.close();
  }
}
