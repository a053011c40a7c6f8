/** Owns the command that writes the self-checks of the shipped models: `tsx scripts/make-self-checks.ts <golden folder>`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer } from '@anush008/tokenizers';
import type { SelfCheck } from '../src/model/manifest.ts';

/** A text of this many tokens is ordinary: no edge case, and quick to run at every start. */
const ordinaryTokens = { min: 8, max: 16 } as const;

/** Digits kept of a reference number; the cosines asked for are far coarser. */
const significantDigits = 7;

const modelsDir = new URL('../models/', import.meta.url).pathname;

/** Least cosines: what each precision of the shipped files gives, measured against fp32, with some room. */
const minCosines = {
  dense: { int8: 0.985, fp16: 0.9995, fp32: 0.99999 },
  rows: { int8: 0.97, fp16: 0.9995, fp32: 0.99999 },
  sparse: { int8: 0.975, fp16: 0.9995, fp32: 0.99999 },
} as const;

interface DenseLine {
  readonly text: string;
  readonly ids: readonly number[];
  readonly vector: string;
}
interface RowsLine {
  readonly text: string;
  readonly kind: 'query' | 'document';
  readonly matrix: string;
}
interface SparseLine {
  readonly text: string;
  readonly indices: readonly number[];
  readonly values: readonly number[];
}

function readLines(folder: string, name: string): { made: unknown; lines: unknown[] } {
  const [first = '{}', ...rest] = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n');
  const { made } = JSON.parse(first) as { made: unknown };
  return { made, lines: rest.map((line) => JSON.parse(line) as unknown) };
}

function decodeFloats(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

const round = (values: readonly number[]): number[] =>
  values.map((value) => Number(value.toPrecision(significantDigits)));

const isOrdinary = (text: string, tokens: number): boolean =>
  /^[a-z0-9 .,]+$/iu.test(text) && tokens >= ordinaryTokens.min && tokens <= ordinaryTokens.max;

function required<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Error(`the golden files hold no ${what}`);
  return value;
}

function write(model: string, made: unknown, checks: readonly SelfCheck[]): void {
  writeFileSync(join(modelsDir, model, 'self-check.json'), `${JSON.stringify({ made, checks })}\n`);
}

function makeMiniLm(golden: string): void {
  const dense = readLines(golden, 'minilm.embed.jsonl');
  const rows = readLines(golden, 'minilm.embed-multi.jsonl');
  const idsOf = new Map((dense.lines as DenseLine[]).map(({ text, ids }) => [text, ids]));
  const vector = required(
    (dense.lines as DenseLine[]).find(({ text, ids }) => isOrdinary(text, ids.length)),
    'ordinary dense text',
  );
  // Of a query every token has its row, so the check needs no list of kept rows.
  const matrix = required(
    (rows.lines as RowsLine[]).find(
      ({ text, kind }) => kind === 'query' && isOrdinary(text, idsOf.get(text)?.length ?? 0),
    ),
    'ordinary query',
  );
  write('all-MiniLM-L6-v2', dense.made, [
    {
      head: 'dense',
      ids: vector.ids,
      expected: { values: round(decodeFloats(vector.vector)), indices: null },
      minCosine: minCosines.dense,
    },
    {
      head: 'rows',
      ids: required(idsOf.get(matrix.text), 'ids of the query'),
      expected: { values: round(decodeFloats(matrix.matrix)), indices: null },
      minCosine: minCosines.rows,
    },
  ]);
}

async function makeSplade(golden: string): Promise<void> {
  const model = 'splade-tiny';
  const tokenizer = Tokenizer.fromFile(join(modelsDir, model, 'tokenizer.json'));
  const sparse = readLines(golden, 'splade.embed-sparse.jsonl');
  for (const { text, indices, values } of sparse.lines as SparseLine[]) {
    const ids = Array.from((await tokenizer.encode(text, null, { addSpecialTokens: true })).getIds(), Number);
    if (!isOrdinary(text, ids.length)) continue;
    write(model, sparse.made, [
      { head: 'sparse', ids, expected: { values: round(values), indices }, minCosine: minCosines.sparse },
    ]);
    return;
  }
  throw new Error('the golden files hold no ordinary sparse text');
}

const golden = process.argv[2];
if (golden === undefined) {
  process.stderr.write('usage: make-self-checks <folder of the golden files>\n');
  process.exitCode = 2;
} else {
  makeMiniLm(golden);
  await makeSplade(golden);
}
