/** Owns what holds of every parser of files, whatever they hold: it ends, with a value or an error, and reads nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { createWireReader, fieldsOf } from '../../src/kernels/onnx/wire.ts';
import { isInsidePath, nextPage } from '../../src/model/hub/listing.ts';
import { readPickle } from '../../src/model/weights/pickle.ts';
import { readSafetensor } from '../../src/model/weights/safetensors.ts';
import { readStoredZip } from '../../src/model/weights/stored-zip.ts';
import { gpusInSmi } from '../../src/device/inventory/nvidia.ts';
import { readLoadReply } from '../../src/device/reply.ts';

const folder = mkdtempSync(join(tmpdir(), 'trivec-parsers-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const bytes = fc.uint8Array({ maxLength: 300 });

/** True where it gives a value or throws an error that tells a person something. */
function endsCleanly(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    return error instanceof Error && error.message !== '';
  }
}

/** One stored entry and its directory, as ZIP writers make them. */
function zipOf(name: string, content: Buffer): Buffer {
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt32LE(content.length, 18);
  local.writeUInt32LE(content.length, 22);
  local.writeUInt16LE(Buffer.byteLength(name), 26);
  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt32LE(content.length, 20);
  entry.writeUInt32LE(content.length, 24);
  entry.writeUInt16LE(Buffer.byteLength(name), 28);
  const head = Buffer.concat([local, Buffer.from(name), content]);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(46 + Buffer.byteLength(name), 12);
  end.writeUInt32LE(head.length, 16);
  return Buffer.concat([head, entry, Buffer.from(name), end]);
}

/** A valid file with some bytes changed. */
const damaged = (whole: fc.Arbitrary<Buffer>) =>
  fc
    .tuple(whole, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 6 }), fc.nat(20))
    .map(([file, faults, cut]) => {
      const broken = Buffer.from(file);
      for (const [at, byte] of faults) if (broken.length > 0) broken[at % broken.length] = byte;
      return broken.subarray(0, broken.length - Math.min(cut, broken.length));
    });

describe('a ZIP archive', () => {
  it('that is whole gives the bytes of its entry', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), bytes, (name, content) => {
        const entries = readStoredZip(zipOf(name, Buffer.from(content)));
        expect([...entries.keys()]).toEqual([name]);
        expect(Buffer.from(entries.get(name) ?? []).equals(Buffer.from(content))).toBe(true);
      }),
    );
  });

  it('that is damaged is refused, or what it gives lies inside of it', () => {
    fc.assert(
      fc.property(damaged(bytes.map((content) => zipOf('a/data.pkl', Buffer.from(content)))), (file) => {
        let entries = new Map<string, Uint8Array>();
        expect(endsCleanly(() => (entries = readStoredZip(file)))).toBe(true);
        for (const content of entries.values()) expect(content.byteLength).toBeLessThanOrEqual(file.byteLength);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a pickle', () => {
  it('of any bytes is refused or gives data, and makes no call', () => {
    const codes = fc.constantFrom(...'()}N\x88\x89JKMXct\x85\x86\x87QRbsuqrhj.').map((code) => code.charCodeAt(0));
    const program = fc.array(fc.oneof({ weight: 3, arbitrary: codes }, fc.nat(255)), { maxLength: 60 });
    fc.assert(
      fc.property(program, (instructions) => {
        let found: unknown = null;
        expect(endsCleanly(() => (found = readPickle(Uint8Array.from([0x80, 2, ...instructions]))))).toBe(true);
        expect(typeof found).not.toBe('function');
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a safetensors file', () => {
  it('of any header and bytes is refused with an error, or gives as many values as its shape says', async () => {
    const path = join(folder, 'any.safetensors');
    const number = fc.oneof(fc.nat(64), fc.constantFrom(-1, 1.5, 2 ** 40, Number.MAX_SAFE_INTEGER));
    const entry = fc.record(
      {
        dtype: fc.constantFrom<unknown>('F32', 'F16', 'BF16', 'F64', 'I8', 5),
        shape: fc.array(number, { maxLength: 3 }),
        data_offsets: fc.array(number, { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: [] },
    );
    const header = fc.oneof(
      fc.record({ weight: entry }).map((object) => JSON.stringify(object)),
      fc.json(),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(header, fc.option(fc.bigInt(0n, 2n ** 64n - 1n)), bytes, async (text, wrongLength, data) => {
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(wrongLength ?? BigInt(Buffer.byteLength(text)));
        writeFileSync(path, Buffer.concat([length, Buffer.from(text), data]));
        try {
          const { shape, values } = await readSafetensor(path, 'weight');
          expect(values).toHaveLength(shape.reduce((product, side) => product * side, 1));
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          expect((error as Error).name).not.toBe('AssertionError');
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('a message in the wire format of ONNX', () => {
  it('of any bytes is refused, or its fields follow each other and fill it', () => {
    fc.assert(
      fc.property(bytes, (array) => {
        const source = {
          byteLength: array.byteLength,
          read: (offset: number, length: number) => array.subarray(offset, offset + length),
        };
        let position = 0;
        const clean = endsCleanly(() => {
          for (const { start, valueStart, end } of fieldsOf(createWireReader(source), 0, array.byteLength)) {
            expect(start).toBe(position);
            expect(valueStart).toBeGreaterThan(start);
            expect(end).toBeGreaterThanOrEqual(valueStart);
            position = end;
          }
        });
        expect(clean).toBe(true);
        expect(position).toBeLessThanOrEqual(array.byteLength);
      }),
      { numRuns: 500 },
    );
  });
});

describe('what other programs say', () => {
  it('a path of a listing that counts as inside stays below the folder that it is joined to', () => {
    const part = fc.constantFrom('a', '.', '..', '', '\\', 'b.json', '%2e%2e', '\0', 'C:', '~');
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
        const path = parts.join('/');
        if (isInsidePath(path)) expect(`${join(folder, path)}/`.startsWith(`${folder}/`)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('the link to a next page of any text is another page of the same host, or none', () => {
    const from = 'https://hub.example/api/models/a/b/tree/main';
    const link = fc.oneof(
      fc.string(),
      fc.webUrl().map((url) => `<${url}>; rel="next"`),
      fc.constantFrom('<//evil.example/x>; rel="next"', '</x>; rel="next"', '<file:///etc/passwd>; rel="next"', null),
    );
    fc.assert(
      fc.property(link, (text) => {
        const page = nextPage(text, from);
        if (page !== null) expect(new URL(page).origin).toBe('https://hub.example');
      }),
      { numRuns: 300 },
    );
  });

  it('a table of GPUs of any text gives GPUs with a name, or none', () => {
    const row = fc.array(fc.oneof(fc.constantFrom('0', 'NVIDIA H200', '[N/A]', '9.0', '143771', 'GPU-1'), fc.string()));
    fc.assert(
      fc.property(fc.array(row.map((cells) => cells.join(', '))), (rows) => {
        expect(gpusInSmi(rows.join('\n')).every(({ name }) => typeof name === 'string')).toBe(true);
      }),
    );
  });

  it('a message of an executor of any shape is taken for what it is, or refused', () => {
    const type = fc.constantFrom<unknown>('loaded', 'loadFailed', 'result', 1);
    fc.assert(
      fc.property(
        fc.oneof(fc.anything(), fc.record({ type, reason: fc.anything(), loadMs: fc.anything() })),
        (message) => {
          expect(endsCleanly(() => readLoadReply(message))).toBe(true);
          expect(() => readLoadReply(message)).not.toThrow();
        },
      ),
      { numRuns: 300 },
    );
  });
});
