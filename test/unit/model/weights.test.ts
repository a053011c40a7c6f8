/** Owns the rules of reading single tensors from the files beside a graph. */
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readPickle } from '../../../src/model/weights/pickle.ts';
import { readTensor } from '../../../src/model/weights/tensor-file.ts';
import { problemsOf, withFolder } from './model-folders.ts';

/** What `torch.save` of PyTorch wrote for the state dictionary of a half-precision `Linear(3, 2)`. */
const torchHalf = Buffer.from(await readFile(new URL('./torch-half.base64', import.meta.url), 'utf8'), 'base64');

/** The bytes of a safetensors file. */
function safetensors(tensors: Readonly<Record<string, { dtype: string; shape: number[]; data: Uint8Array }>>): Buffer {
  let offset = 0;
  const entries = Object.entries(tensors).map(([name, { dtype, shape, data }]) => {
    const start = offset;
    offset += data.byteLength;
    return [name, { dtype, shape, data_offsets: [start, offset] }] as const;
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.byteLength));
  return Buffer.concat([length, header, ...Object.values(tensors).map(({ data }) => data)]);
}

const bytesOf = (values: Float32Array | Uint16Array | Float64Array): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

describe('a safetensors file', () => {
  it.each([
    ['F32', bytesOf(Float32Array.of(1.5, -2, 0.25, 65504))],
    ['F64', bytesOf(Float64Array.of(1.5, -2, 0.25, 65504))],
    ['F16', bytesOf(Uint16Array.of(0x3e00, 0xc000, 0x3400, 0x7bff))],
    ['BF16', bytesOf(Uint16Array.of(0x3fc0, 0xc000, 0x3e80, 0x4780))],
  ])('gives a tensor of %s as float32', async (dtype, data) => {
    await withFolder(async (folder) => {
      const path = join(folder, 'model.safetensors');
      const other = { dtype: 'F32', shape: [1], data: bytesOf(Float32Array.of(9)) };
      await writeFile(path, safetensors({ other, wanted: { dtype, shape: [2, 2], data } }));
      const { shape, values } = await readTensor({ path, name: 'wanted' });
      expect(shape).toEqual([2, 2]);
      expect([...values].slice(0, 3)).toEqual([1.5, -2, 0.25]);
      // The largest float16 is no bfloat16: that one has 65536 instead.
      expect(values[3]).toBe(dtype === 'BF16' ? 65536 : 65504);
    });
  });

  it('is refused with the reason where it is cut off, lacks the tensor, or is another kind of file', async () => {
    await withFolder(async (folder) => {
      const path = join(folder, 'model.safetensors');
      const whole = safetensors({ weight: { dtype: 'F32', shape: [2], data: bytesOf(Float32Array.of(1, 2)) } });
      await writeFile(path, whole);
      const problemOf = async (name: string) => (await problemsOf(readTensor({ path, name })))[0];
      expect(await problemOf('bias')).toContain('has no tensor bias');
      await truncate(path, whole.byteLength - 1);
      expect(await problemOf('weight')).toContain('is cut off');
      await writeFile(path, safetensors({ weight: { dtype: 'I64', shape: [1], data: new Uint8Array(8) } }));
      expect(await problemOf('weight')).toContain('as I64, which is not supported');
      await writeFile(path, Buffer.alloc(32, 0xff));
      expect(await problemOf('weight')).toContain('has no safetensors header');
      expect((await problemsOf(readTensor({ path: join(folder, 'x.bin'), name: 'w' })))[0]).toContain('only');
      expect((await problemsOf(readTensor({ path: join(folder, 'x.safetensors'), name: 'w' })))[0]).toContain('ENOENT');
    });
  });
});

describe('a PyTorch file', () => {
  it('gives the tensors of its state dictionary', async () => {
    await withFolder(async (folder) => {
      const path = join(folder, 'sparse_linear.pt');
      await writeFile(path, torchHalf);
      expect(await readTensor({ path, name: 'weight' })).toEqual({
        shape: [2, 3],
        values: Float32Array.of(1, -2, 0.5, 0.25, 3, -4),
      });
      expect((await readTensor({ path, name: 'bias' })).values).toEqual(Float32Array.of(0.75, -1.5));
      expect((await problemsOf(readTensor({ path, name: 'scale' })))[0]).toContain('has no tensor scale');
    });
  });

  it('is refused where it is cut off', async () => {
    await withFolder(async (folder) => {
      const path = join(folder, 'sparse_linear.pt');
      await writeFile(path, torchHalf.subarray(0, 600));
      expect((await problemsOf(readTensor({ path, name: 'weight' })))[0]).toContain('is no ZIP archive');
    });
  });

  it('never makes a call that a pickle asks for: what it names stays data', () => {
    // GLOBAL os.system, a text, TUPLE1, REDUCE.
    const pickle = Buffer.from('\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.', 'latin1');
    expect(readPickle(pickle)).toEqual({ call: 'os.system', arguments: ['true'] });
  });

  it('is refused at an instruction that no state dictionary needs', () => {
    // BUILD on an instance that INST makes.
    expect(() => readPickle(Buffer.from('\x80\x02(ios\nsystem\n.', 'latin1'))).toThrow('the instruction "i"');
  });
});
