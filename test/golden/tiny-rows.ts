/** Owns the tiny models as an executor gets them, and the comparison of its rows with the golden ones. */
import { readFileSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Head, ModelLoad, RunItem, RunRow } from '../../src/executor/protocol.ts';
import type { ModelManifest, Precision } from '../../src/model/manifest.ts';
import { prepareModels } from '../../src/model/prepare.ts';
import { readModelFolder } from '../../src/model/read-folder.ts';
import type { ModelUse } from '../../src/model/role.ts';
import { cosine, maxDifference } from '../unit/kernels/run-onnx.ts';
import { decodeFloats, goldenFolder, goldenModels, goldenRecords } from '../unit/model/golden-models.ts';
import type { GoldenRecord } from '../unit/model/golden-models.ts';

/** One model at one precision, ready for an executor. */
export interface TinyModel {
  readonly modelId: string;
  readonly manifest: ModelManifest;
  readonly load: ModelLoad;
  readonly records: readonly GoldenRecord[];
  readonly items: readonly RunItem[];
}

/** A query of a model with the MaxSim sums of some passages whose rows are golden as well. */
export interface GoldenScores {
  readonly query: GoldenRecord;
  readonly passages: readonly GoldenRecord[];
  readonly scores: readonly number[];
}

/** The template of the generative model, whose files do not have it. */
function yesNoEntry(): unknown {
  const model: (typeof goldenModels)[number] & { readonly template?: Readonly<Record<string, string>> } =
    goldenModels.find(({ name }) => name === 'generative-reranker') ?? { name: '', task: '', expect: '' };
  const { positive: yes, negative: no, ...texts } = model.template ?? {};
  return { yes, no, ...texts };
}

/** What the catalogue must say before a model is served. */
const catalogEntries: Readonly<Record<string, unknown>> = {
  'cross-encoder-2': { positiveLabel: 1 },
  'generative-reranker': { yesNo: yesNoEntry() },
  'bert-matryoshka': { isMatryoshka: true },
};

/** Models that are refused before an executor could see them. */
export const refusedModels = ['bert-mystery', 'bert-linear-bin', 'cross-encoder-5'];

/** Every model that is served, with each precision that it has a file of. */
export const tinyCases: readonly (readonly [name: string, precision: Precision])[] = goldenModels
  .filter(({ name }) => !refusedModels.includes(name))
  .flatMap(({ name }) =>
    (name === 'variant-precisions' ? (['fp32', 'fp16', 'int8'] as const) : (['fp32'] as const)).map(
      (precision) => [name, precision] as const,
    ),
  );

/** The id under which a case is loaded. */
export const tinyId = (name: string, precision: Precision): string => `${name}-${precision}`;

function usesOf(task: string): ModelUse[] {
  const tasks = task.split(', ');
  if (task.startsWith('rerank')) return ['rerank'];
  return [
    ...(tasks.includes('embed') ? (['embed'] as const) : []),
    ...(tasks.includes('embed/sparse') ? (['sparseEmbed'] as const) : []),
    ...(tasks.includes('embed/multi') ? (['multiVector'] as const) : []),
  ];
}

/** Tokens of a record's prompt: those at its start that all texts of its kind share. */
function promptTokensOf(record: GoldenRecord, records: readonly GoldenRecord[]): number {
  if ((record.prompt ?? '') === '') return 0;
  const others = records.filter(({ kind }) => kind === record.kind);
  return record.ids.findIndex((_, index) => !others.every(({ ids }) => ids[index] === record.ids[index]));
}

function itemOf(record: GoldenRecord, records: readonly GoldenRecord[], { tokenRows }: ModelManifest): RunItem {
  const { ids, typeIds, attentionMask, keptRows, matrix } = record;
  const all = [...ids.keys()].filter((token) => token > 0 || tokenRows.keepsFirstRow);
  return {
    ids: Int32Array.from(ids),
    typeIds: typeIds === undefined ? null : Uint8Array.from(typeIds),
    keptRows: matrix === undefined ? null : Int32Array.from(keptRows ?? all),
    promptTokens: promptTokensOf(record, records),
    ...(attentionMask === undefined ? {} : { attendedTokens: attentionMask.filter((bit) => bit === 1).length }),
  };
}

/** All cases, prepared in `folder`. */
export async function prepareTinyModels(folder: string): Promise<TinyModel[]> {
  const copies = join(folder, 'models');
  await mkdir(copies, { recursive: true });
  await writeFile(join(copies, 'catalog.json'), JSON.stringify(catalogEntries));
  const manifests = await Promise.all(
    tinyCases.map(async ([name, precision]) => {
      const copy = join(copies, name);
      if (name in catalogEntries) await cp(goldenFolder(name), copy, { recursive: true });
      const task = goldenModels.find((model) => model.name === name)?.task ?? '';
      const from = name in catalogEntries ? copy : goldenFolder(name);
      const manifest = await readModelFolder(from, usesOf(task), precision);
      return { ...manifest, modelId: tinyId(name, precision) };
    }),
  );
  const loads = await prepareModels(manifests, folder);
  return tinyCases.flatMap(([name], index) => {
    const [manifest, load] = [manifests[index], loads[index]];
    if (manifest === undefined || load === undefined) return [];
    // Queries of a model with weights for their terms are looked up, never run.
    const isLookedUp = manifest.sparse?.form === 'terms' && manifest.sparse.queryTermWeights !== null;
    const records = goldenRecords(name).filter(({ kind }) => !isLookedUp || kind !== 'query');
    const items = records.map((record) => itemOf(record, records, manifest));
    return [{ modelId: load.modelId, manifest, load, records, items }];
  });
}

/** Whether a record has a golden value for a head. */
export const hasGolden = (record: GoldenRecord, head: Head): boolean =>
  ({
    dense: record.vector,
    sparse: record.indices,
    rows: record.matrix,
    logit: record.logits,
    maxSim: undefined,
    hidden: undefined,
  })[head] !== undefined;

/** Fails unless a row of a head is the golden one. */
export function expectGolden({ manifest }: TinyModel, head: Head, record: GoldenRecord, row: RunRow): void {
  const found = [...row.values];
  if (head === 'dense') {
    const expected = decodeFloats(record.vector ?? '');
    const least = { fp32: 0.99999, fp16: 0.9995, int8: 0.99 }[manifest.precision];
    expect(found).toHaveLength(manifest.dimension);
    expect(cosine(found, expected)).toBeGreaterThanOrEqual(least);
    if (manifest.precision !== 'fp32') return;
    expect(maxDifference(found, expected)).toBeLessThan(manifest.isNormalized ? 1e-5 : 1e-4);
  } else if (head === 'sparse') {
    expect([...(row.indices ?? [])]).toEqual(record.indices);
    expect(maxDifference(found, record.values ?? [])).toBeLessThan(1e-4);
  } else if (head === 'rows') {
    const expected = decodeFloats(record.matrix ?? '');
    expect(found).toHaveLength(expected.length);
    expect(maxDifference(found, expected)).toBeLessThan(2e-5);
  } else {
    const [first = NaN, second] = record.logits ?? [];
    expect(maxDifference(found, [second === undefined ? first : second - first])).toBeLessThan(1e-4);
  }
}

/** The golden MaxSim sums of a model, of the texts whose rows are golden. */
export function goldenScores(name: string): GoldenScores[] {
  const records = goldenRecords(name).filter(({ matrix }) => matrix !== undefined);
  const find = (text: string, kind: 'query' | 'document') =>
    records.find((record) => record.text === text && (record.kind ?? kind) === kind);
  const [, ...lines] = readFileSync(new URL(`tiny/golden/${name}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n');
  return lines.flatMap((line) => {
    const { query, passages, scores } = JSON.parse(line) as {
      readonly query?: string;
      readonly passages?: readonly string[];
      readonly scores?: readonly number[];
    };
    if (query === undefined || passages === undefined || scores === undefined) return [];
    const queryRecord = find(query, 'query');
    const known = passages.flatMap((passage, index) => {
      const record = find(passage, 'document');
      return record === undefined ? [] : [{ record, score: scores[index] ?? NaN }];
    });
    if (queryRecord === undefined || known.length === 0) return [];
    return [
      { query: queryRecord, passages: known.map(({ record }) => record), scores: known.map(({ score }) => score) },
    ];
  });
}
