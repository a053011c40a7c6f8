import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { RunItem } from '../../src/executor/protocol.ts';
import type { ModelManifest } from '../../src/model/manifest.ts';
import { readModelFolder } from '../../src/model/read-folder.ts';
import type { ModelUse } from '../../src/model/role.ts';
import type { ServedModel } from '../../src/task/context.ts';
import { rerank } from '../../src/task/rerank.ts';
import { runTexts } from '../../src/task/run-texts.ts';
import { openServedModel } from '../../src/task/served-model.ts';
import { sparseEmbed } from '../../src/task/sparse-embed.ts';
import { lookUpFormOf } from '../../src/task/text-form.ts';
import { goldenFolder, goldenModels } from '../unit/model/golden-models.ts';
import { contextOf, createFakeScheduler } from '../unit/task/fakes.ts';
import { loadQuietly } from '../unit/tokenize/minilm.ts';

interface GoldenLine {
  readonly text?: string;
  readonly kind?: 'query' | 'document' | null;
  readonly prompt?: string;
  readonly ids?: readonly number[];
  readonly typeIds?: readonly number[];
  readonly attentionMask?: readonly number[];
  readonly keptRows?: readonly number[];
  readonly tokensBeforeTruncation?: number;
  readonly query?: string;
  readonly passage?: string;
  readonly indices?: readonly number[];
  readonly values?: readonly number[];
}
type GoldenText = GoldenLine & { readonly text: string; readonly ids: readonly number[] };
type GoldenPair = GoldenLine & { readonly query: string; readonly passage: string; readonly ids: readonly number[] };

function goldenLines(name: string): GoldenLine[] {
  const path = new URL(`tiny/golden/${name}.jsonl`, import.meta.url);
  const [, ...lines] = readFileSync(path, 'utf8').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as GoldenLine).filter(({ ids }) => ids !== undefined);
}

const textsOf = (name: string) => goldenLines(name).filter((line): line is GoldenText => line.text !== undefined);
const pairsOf = (name: string) => goldenLines(name).filter((line): line is GoldenPair => line.passage !== undefined);

/** Models that cannot be served, or not without a catalogue, and one with the same limit that can. */
const standIns: Readonly<Record<string, string>> = {
  'bert-linear-bin': 'bert-linear',
  'cross-encoder-2': 'cross-encoder-1',
  'cross-encoder-5': 'cross-encoder-1',
};

const parents: string[] = [];
afterAll(() => Promise.all(parents.map((parent) => rm(parent, { recursive: true }))));

async function generativeFolder(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'trivec-llm-'));
  parents.push(parent);
  const { template } = goldenModels.find(({ name }) => name === 'generative-reranker') as unknown as {
    template: Record<'prefix' | 'body' | 'suffix' | 'instruction' | 'positive' | 'negative', string>;
  };
  const { positive: yes, negative: no, ...texts } = template;
  await writeFile(join(parent, 'catalog.json'), JSON.stringify({ llm: { yesNo: { yes, no, ...texts } } }));
  await symlink(goldenFolder('generative-reranker'), join(parent, 'llm'));
  return join(parent, 'llm');
}

async function open(name: string, uses: readonly ModelUse[]): Promise<ServedModel> {
  const folder = name === 'generative-reranker' ? await generativeFolder() : goldenFolder(standIns[name] ?? name);
  const manifest = await readModelFolder(folder, uses, 'fp32');
  return openServedModel(manifest, await loadQuietly(goldenFolder(name), manifest.maxTokens), name);
}

const usesOf = (task: string): ModelUse[] => [
  ...(task.split(', ').includes('embed') ? (['embed'] as const) : []),
  ...(task.includes('embed/sparse') ? (['sparseEmbed'] as const) : []),
  ...(task.includes('embed/multi') ? (['multiVector'] as const) : []),
  ...(task.startsWith('rerank') ? (['rerank'] as const) : []),
];

const zeros = (length: number) => Array<number>(length).fill(0);
const range = (length: number) => Array.from({ length }, (_, index) => index);

/** What is fed for an item, in the form of the golden files. */
const fedOf = ({ ids, typeIds, keptRows, promptTokens, attendedTokens }: RunItem) => ({
  ids: [...ids],
  typeIds: typeIds === null ? zeros(ids.length) : [...typeIds],
  keptRows: keptRows === null ? range(ids.length) : [...keptRows],
  attentionMask: range(ids.length).map((token) => (token < (attendedTokens ?? Infinity) ? 1 : 0)),
  promptTokens: promptTokens ?? 0,
});

/** Tokens of each kind's prompt: those of the empty text, but for its last special token. */
function promptTokens({ kind, prompt }: GoldenText, records: readonly GoldenText[], manifest: ModelManifest): number {
  if (manifest.includesPrompt || (prompt ?? '') === '') return 0;
  const empty = records.find((record) => record.text === '' && record.kind === kind);
  return (empty?.ids.length ?? NaN) - 1;
}

function limitOf({ maxTokens, tokenRows }: ModelManifest, kind: GoldenText['kind'], hasRows: boolean): number {
  if (!hasRows) return maxTokens;
  const own = kind === 'query' ? tokenRows.maxQueryTokens : tokenRows.maxDocumentTokens;
  return Math.min(maxTokens, own ?? Infinity);
}

async function checkTexts(served: ServedModel, name: string, head: 'dense' | 'sparse' | 'rows'): Promise<number> {
  const all = textsOf(name);
  const { manifest } = served;
  const isLookUp = manifest.sparse?.form === 'terms' && manifest.sparse.queryTermWeights !== null;
  const checked = all.filter(({ kind }) => !(isLookUp && kind === 'query'));
  for (const kind of ['query', 'document', null] as const) {
    const records = checked.filter((record) => (record.kind ?? null) === kind);
    const scheduler = createFakeScheduler();
    const input = { texts: records.map(({ text }) => text), kind, field: 'inputs' };
    const { usage } = await runTexts(served, head, input, contextOf(scheduler));
    const items = scheduler.jobs.flatMap((job) => job.items);
    expect(items).toHaveLength(records.length);
    for (const [index, record] of records.entries()) {
      const { ids, typeIds, attentionMask, keptRows, tokensBeforeTruncation, text } = record;
      const fed = fedOf(items[index] as RunItem);
      const isFirstKept = head !== 'rows' || manifest.tokenRows.keepsFirstRow;
      expect({ text, ...fed }).toEqual({
        text,
        ids,
        typeIds: typeIds ?? zeros(ids.length),
        keptRows: keptRows ?? range(ids.length).slice(isFirstKept ? 0 : 1),
        attentionMask: attentionMask ?? zeros(ids.length).map(() => 1),
        promptTokens: head === 'dense' ? promptTokens(record, all, manifest) : 0,
      });
      if (tokensBeforeTruncation === undefined) continue;
      const isCut = tokensBeforeTruncation > limitOf(manifest, kind, head === 'rows');
      expect({ text, isCut: usage.truncated.includes(index) }).toEqual({ text, isCut });
    }
    expect(usage.inputTokens).toBe(records.reduce((sum, { ids }) => sum + ids.length, 0));
  }
  return checked.length;
}

const listed = goldenModels.filter(({ name }) => name !== 'bert-mystery');

describe('ids of a tiny model are those of the reference', () => {
  it('every model but the one that nobody can serve is compared', () => {
    expect(listed.length).toBeGreaterThan(40);
  });

  it.each(listed.filter(({ task }) => task.includes('embed')))('$name for $task', async ({ name, task }) => {
    const uses = usesOf(task).filter((use) => use !== 'rerank');
    const served = await open(name, uses);
    const heads = { embed: 'dense', sparseEmbed: 'sparse', multiVector: 'rows', rerank: 'rows' } as const;
    for (const use of uses) expect(await checkTexts(served, name, heads[use])).toBeGreaterThan(8);
  });

  it.each(listed.filter(({ task }) => task.startsWith('rerank')))('$name for $task', async ({ name }) => {
    const served = await open(name, ['rerank']);
    const method = served.manifest.yesNo === null ? 'cross-encoder' : 'llm';
    const records = pairsOf(name);
    expect(records.length).toBeGreaterThan(8);
    for (const query of new Set(records.map((record) => record.query))) {
      const its = records.filter((record) => record.query === query);
      const scheduler = createFakeScheduler();
      const input = { query, passages: its.map(({ passage }) => passage), field: 'passages' };
      const { usage } = await rerank({ method, served }, input, contextOf(scheduler));
      const fed = scheduler.jobs.flatMap((job) => job.items).map(fedOf);
      expect(fed.map(({ ids, typeIds }) => ({ ids, typeIds }))).toEqual(
        its.map(({ ids, typeIds }) => ({ ids, typeIds: typeIds ?? zeros(ids.length) })),
      );
      expect(usage.truncated).toEqual(
        its.flatMap(({ ids, tokensBeforeTruncation = 0 }, index) =>
          tokensBeforeTruncation > ids.length ? [index] : [],
        ),
      );
    }
  });

  it.each(listed.filter(({ task }) => task.includes('colbert')))(
    '$name for its passages of a colbert rerank',
    async ({ name }) => {
      const served = await open(name, ['multiVector']);
      const documents = textsOf(name).filter(({ kind }) => kind !== 'query');
      const scheduler = createFakeScheduler();
      const input = { query: 'wind', passages: documents.map(({ text }) => text), field: 'passages' };
      await rerank({ method: 'colbert', served }, input, contextOf(scheduler));
      const fed = scheduler.jobs[1]?.items.map(fedOf) ?? [];
      expect(fed.map(({ ids }) => ids)).toEqual(documents.map(({ ids }) => ids));
      const first = served.manifest.tokenRows.keepsFirstRow ? 0 : 1;
      expect(fed.map(({ keptRows }) => keptRows)).toEqual(
        documents.map(({ ids, keptRows }) => keptRows ?? range(ids.length).slice(first)),
      );
    },
  );
});

describe('a query of a model that needs no run for it', () => {
  it('has the ids, terms and weights of the reference, and no device', async () => {
    const name = 'sparse-inference-free';
    const served = await open(name, ['sparseEmbed']);
    const queries = textsOf(name).filter(({ kind }) => kind === 'query');
    expect(queries.length).toBeGreaterThan(5);
    const texts = queries.map(({ text }) => text);
    const tokenized = await served.tokenizer.tokenize(texts, undefined, lookUpFormOf(served.manifest));
    expect(tokenized.map(({ ids }) => [...ids])).toEqual(queries.map(({ ids }) => ids));
    const scheduler = createFakeScheduler();
    const { sparse, usage } = await sparseEmbed(
      served,
      { texts, kind: 'query', field: 'inputs' },
      contextOf(scheduler),
    );
    expect(scheduler.loads).toEqual([]);
    expect(usage).toMatchObject({ device: null, truncated: [] });
    for (const [index, { indices, values = [] }] of queries.entries()) {
      expect([...(sparse[index]?.indices ?? [])]).toEqual(indices);
      for (const [at, value] of values.entries()) expect(sparse[index]?.values[at]).toBeCloseTo(value, 5);
    }
  });
});

describe('a Router', () => {
  it('has the limit that its module for documents states', async () => {
    const { maxTokens } = await readModelFolder(goldenFolder('sparse-inference-free'), ['sparseEmbed'], 'fp32');
    expect(maxTokens).toBe(48);
  });
});
