import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tableFromIPC } from 'apache-arrow';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { runBulk } from '../../../src/bulk/embed.ts';
import { formatProblems, outputEndOf } from '../../../src/bulk/write/choose.ts';
import type { BulkPlan } from '../../../src/bulk/embed.ts';
import type { MethodName } from '../../../src/bulk/source/source.ts';
import { fakeSource, never, openPlace, planOf, silent, vectorOf, vectorsOf, type Place } from './fakes.ts';

let place: Place;
beforeEach(() => (place = openPlace()));
afterEach(() => {
  place.remove();
});

const texts = Array.from({ length: 300 }, (_, row) => `text ${row}${'x'.repeat(row % 5)}`);

async function make(
  name: string,
  method: MethodName = 'dense',
  changes: Partial<BulkPlan> = {},
  all = texts,
): Promise<string> {
  const input = place.write(
    'in.jsonl',
    all.map((text, row) => `${JSON.stringify({ id: `row ${row}`, key: row, text })}\n`).join(''),
  );
  const wish = { method, kind: 'document', model: null, dimensions: null } as const;
  await runBulk(await planOf(input, place.path(name), { wish, ...changes }), fakeSource(method), silent, never);
  return place.path(name);
}

const withIds = { fields: { text: 'text', id: 'id' } };
const listed = (values: ArrayLike<number>): number[] => Array.from(values);

describe('JSON lines', () => {
  it('hold number, id and vector of every row, with float32 values that read back equal', async () => {
    const lines = readFileSync(await make('a.jsonl', 'dense', withIds), 'utf8')
      .trimEnd()
      .split('\n');
    const rows = lines.map((line) => JSON.parse(line) as { index: number; id: string; embedding: number[] });
    expect(rows.map(({ index, id }) => [index, id])).toEqual(texts.map((_, row) => [row, `row ${row}`]));
    expect(rows.map(({ embedding }) => Float32Array.from(embedding))).toEqual(texts.map(vectorOf));
  });

  it('hold the terms of sparse vectors and the rows of matrices', async () => {
    const [sparse] = readFileSync(await make('a.jsonl', 'sparse'), 'utf8').split('\n');
    expect(JSON.parse(sparse ?? '')).toEqual({ index: 0, indices: [6, 9], values: [0.25, 0.5] });
    const [multi] = readFileSync(await make('b.jsonl', 'multi'), 'utf8').split('\n');
    expect(JSON.parse(multi ?? '')).toEqual({ index: 0, matrix: [[6, 7, 8, 9]] });
  });

  it('hold integers where these are asked for', async () => {
    const [line] = readFileSync(await make('a.jsonl', 'dense', { output: 'uint8' }), 'utf8').split('\n');
    expect(JSON.parse(line ?? '')).toEqual({ index: 0, embedding: [255, 255, 146, 65] });
  });
});

describe('an array of NumPy', () => {
  it('says its type and shape in a head of 128 bytes, and holds the vectors behind it', async () => {
    const bytes = readFileSync(await make('a.npy'));
    expect(bytes.subarray(0, 8).toString('latin1')).toBe('\u0093NUMPY\u0001\u0000');
    expect(bytes.subarray(10, 128).toString('latin1').trimEnd()).toBe(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (300, 4), }",
    );
    const values = new Float32Array(new Uint8Array(bytes.subarray(128)).buffer);
    expect(values).toEqual(Float32Array.from(texts.flatMap((text) => listed(vectorOf(text)))));
  });
});

const expected = (method: MethodName): object[] => {
  const vectors = vectorsOf(method, texts);
  return texts.map((_, row) => {
    if (vectors.kind === 'dense') return { embedding: listed(vectors.vectors[row] ?? []) };
    if (vectors.kind === 'sparse') {
      const { indices, values } = vectors.sparse[row] ?? { indices: [], values: [] };
      return { indices: listed(indices), values: listed(values) };
    }
    const { values } = vectors.matrices[row] ?? { values: new Float32Array() };
    const rows = Array.from({ length: values.length / 4 }, (__, place_) =>
      listed(values.subarray(place_ * 4, place_ * 4 + 4)),
    );
    return { matrix: rows };
  });
};

describe.each(['dense', 'sparse', 'multi'] as const)('%s vectors', (method) => {
  it('read back from Parquet', async () => {
    const file = await asyncBufferFromFile(await make('a.parquet', method, withIds));
    const rows = (await parquetReadObjects({ file })) as Record<string, unknown>[];
    expect(rows.map(({ index, id }) => [index, id])).toEqual(texts.map((_, row) => [BigInt(row), `row ${row}`]));
    expect(rows.map(({ index: _, id: __, ...rest }) => rest)).toEqual(expected(method));
  });

  it('read back from Arrow', async () => {
    const table = tableFromIPC(readFileSync(await make('a.arrow', method, withIds)));
    const rows = table
      .toArray()
      .map(
        (row) =>
          JSON.parse(
            JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value)),
          ) as Record<string, unknown>,
      );
    expect(rows.map(({ index, id }) => [index, id])).toEqual(texts.map((_, row) => [row, `row ${row}`]));
    const vectors = rows.map(({ index: _, id: __, ...rest }) => rest);
    expect(JSON.parse(JSON.stringify(vectors))).toEqual(JSON.parse(JSON.stringify(expected(method))));
  });

  it('of no rows make a whole file of each kind', async () => {
    const file = await asyncBufferFromFile(await make('a.parquet', method, {}, []));
    expect(await parquetReadObjects({ file })).toEqual([]);
    expect(tableFromIPC(readFileSync(await make('a.arrow', method, {}, []))).numRows).toBe(0);
  });
});

describe('ids', () => {
  it('are numbers in columns where every one of them is a whole number', async () => {
    const path = await make('a.parquet', 'dense', { fields: { text: 'text', id: 'key' } });
    const rows = (await parquetReadObjects({ file: await asyncBufferFromFile(path) })) as { id: unknown }[];
    expect(rows.slice(0, 2).map(({ id }) => id)).toEqual([0n, 1n]);
  });
});

describe('a format', () => {
  it('refuses what it cannot hold before anything runs', () => {
    const wanted = { kind: 'sparse', hasIds: true, output: 'int8', skipsBad: true } as const;
    expect(formatProblems('npy', wanted)).toHaveLength(4);
    expect(formatProblems('parquet', { ...wanted, output: null })).toEqual([]);
    expect(() => outputEndOf('a.txt')).toThrow('--out must end in .jsonl, .npy, .parquet, .arrow');
  });
});
