/** Owns what a model must show on a device before it serves there. */
import type { ProofRun } from './device/proof.ts';
import { ConfigurationError } from './errors.ts';
import type { Head, RunBatch, RunItem, RunRow } from './executor/protocol.ts';
import { loadIdOf, type ModelManifest, type Precision, type SelfCheck } from './model/manifest.ts';
import { toRunItem } from './task/run-texts.ts';
import { textFormOf } from './task/text-form.ts';
import { cosine, sparseCosine } from './tensor/cosine.ts';
import { allFinite } from './tensor/finite.ts';
import type { TextTokenizer } from './tokenize/tokenizer.ts';

/** Texts for heads without a stored answer: what matters is that they run, and differ. */
const probeQuery = 'how does heat move through a plate';
const probeWord = 'heat';
const probePassages = ['heat flows through the plate by conduction', 'the committee met on a tuesday'] as const;

/** Least cosine between what a text gives alone and in company; int8 texts never share a run and give the same bits. */
const minCompanyCosine: Readonly<Record<Exclude<Precision, 'int8'>, number>> = { fp32: 0.99999, fp16: 0.9995 };

/** Largest difference of a score, as a share of it where it is above 1: a single number has no direction to compare. */
const maxScoreDifference: Readonly<Record<Exclude<Precision, 'int8'>, number>> = { fp32: 1e-3, fp16: 3e-2 };

/** A text of the model's full length is run up to this limit: beyond, it would take seconds. @unit tokens */
const maxProvedTokens = 2_048;

/**
 * Proof runs of a model: its stored answers, a plain run of every head that has none, one of the longest text, and,
 * where texts may share a run, what a text gives alone against what it gives in company.
 * @throws ConfigurationError where the tokenizer gives ids that the model has no row for
 */
export async function proofRunsOf(model: ModelManifest, tokenizer: TextTokenizer): Promise<ProofRun[]> {
  checkVocabulary(model, tokenizer);
  const checked = model.selfChecks.map((check) => compareWithStored(model, check));
  const unchecked = model.heads.filter((head) => !model.selfChecks.some((check) => check.head === head));
  const plain = await Promise.all(unchecked.map((head) => plainRun(model, head, tokenizer)));
  const sharing = model.runPolicy.kind === 'alone' ? [] : model.heads;
  const company = await Promise.all(sharing.map((head) => companyRuns(model, head, tokenizer)));
  return [...checked, ...plain, ...(await longestRuns(model, tokenizer)), ...company.flat()];
}

/** Passages in the form that a head takes. */
async function probeItems(
  manifest: ModelManifest,
  head: Head,
  tokenizer: TextTokenizer,
  passages: readonly string[],
): Promise<RunItem[]> {
  const texts =
    head === 'logit'
      ? await tokenizer.tokenizePairs(probeQuery, passages, undefined, manifest.yesNo ?? undefined)
      : await tokenizer.tokenize(passages, undefined, textFormOf({ manifest, tokenizer }, head, 'document'));
  return texts.map((text) => toRunItem(text, null));
}

const batchOf = (model: ModelManifest, head: Head, items: readonly RunItem[]): RunBatch => ({
  modelId: loadIdOf(model),
  head,
  items,
  queryRows: head === 'maxSim' ? unitRow(model.rowDimension) : null,
});

const unitRow = (dimension: number) => ({ values: Float32Array.of(1, ...new Float32Array(dimension - 1)), dimension });

function compareWithStored(model: ModelManifest, check: SelfCheck): ProofRun {
  const item: RunItem = { ids: Int32Array.from(check.ids), typeIds: null, keptRows: null };
  const least = check.minCosine[model.precision];
  return {
    batch: batchOf(model, check.head, [item]),
    judge([row]) {
      const likeness = row === undefined ? 0 : likenessTo(row, check.expected);
      if (likeness >= least) return null;
      return `${model.modelId} (${check.head}, ${model.precision}) gave a cosine of ${likeness.toFixed(5)} to its stored answer, the least is ${least}`;
    },
  };
}

function likenessTo(row: RunRow, expected: SelfCheck['expected']): number {
  if (!allFinite(row.values)) return 0;
  if (expected.indices !== null) {
    return row.indices === null
      ? 0
      : sparseCosine(
          { indices: row.indices, values: row.values },
          { indices: expected.indices, values: expected.values },
        );
  }
  return row.values.length === expected.values.length ? cosine(row.values, expected.values) : 0;
}

async function plainRun(model: ModelManifest, head: Head, tokenizer: TextTokenizer): Promise<ProofRun> {
  return {
    batch: batchOf(model, head, await probeItems(model, head, tokenizer, probePassages)),
    judge(rows) {
      const label = labelOf(model, head);
      if (!rows.every((row) => allFinite(row.values))) return `${label} gave values that are not numbers`;
      const [first, second] = rows;
      // A head that does not fit its model often gives the same value for everything.
      const isConstant = head === 'logit' && first?.values[0] === second?.values[0];
      return isConstant ? `${label} gave the same score for different passages` : null;
    },
  };
}

/** Special tokens may lie beyond the table: ordinary text does not hold them. */
function checkVocabulary(model: ModelManifest, { ordinaryIdEnd }: TextTokenizer): void {
  const rows = Math.min(model.vocabularySize, model.tokenTableRows ?? Infinity);
  if (ordinaryIdEnd <= rows) return;
  throw new ConfigurationError([
    `${model.folder}: its tokenizer gives ids up to ${ordinaryIdEnd - 1}, but its graph and config.json have ` +
      `${rows} tokens: they are of different models`,
  ]);
}

/** One text of the full length, by the first head: a limit that the graph does not reach shows before it is served. */
async function longestRuns(model: ModelManifest, tokenizer: TextTokenizer): Promise<ProofRun[]> {
  const head = model.heads.find((one) => one !== 'maxSim');
  if (head === undefined || model.maxTokens > maxProvedTokens) return [];
  const [item] = await probeItems(model, head, tokenizer, [`${probeWord} `.repeat(model.maxTokens)]);
  if (item === undefined) return [];
  return [
    {
      batch: batchOf(model, head, [item]),
      judge([row]) {
        if (row !== undefined && allFinite(row.values)) return null;
        return `${labelOf(model, head)} gave values that are not numbers for a text of ${item.ids.length} tokens`;
      },
    },
  ];
}

const labelOf = (model: ModelManifest, head: Head): string => `${model.modelId} (${head}, ${model.precision})`;

/** A text of the same length and other content: it shares a run also where nothing hides padding. */
function withReversedWords(item: RunItem): RunItem {
  const { ids } = item;
  return {
    ...item,
    ids: Int32Array.of(...ids.subarray(0, 1), ...ids.slice(1, -1).reverse(), ...ids.slice(1).slice(-1)),
  };
}

/**
 * The same text twice: alone, then beside one of its length and a longer one. Both run on each executor in this order;
 * what counts is the latest answer of any of them, which must agree.
 */
async function companyRuns(model: ModelManifest, head: Head, tokenizer: TextTokenizer): Promise<ProofRun[]> {
  const passages = [probePassages[0], probePassages.join(' and ')];
  const [text, longer] = await probeItems(model, head, tokenizer, passages);
  if (text === undefined || longer === undefined) return [];
  let alone: RunRow | null = null;
  return [
    {
      batch: batchOf(model, head, [text]),
      judge([row]) {
        alone = row ?? null;
        return null;
      },
    },
    {
      batch: batchOf(model, head, [longer, text, withReversedWords(text)]),
      judge([, row]) {
        if (alone === null || row === undefined) return `${labelOf(model, head)} gave no answer to compare`;
        return isSameInCompany(alone, row, head, model.precision)
          ? null
          : `${labelOf(model, head)} gave other values for a text in a batch than for the same text alone`;
      },
    },
  ];
}

function isSameInCompany(alone: RunRow, together: RunRow, head: Head, precision: Precision): boolean {
  if (!allFinite(alone.values) || !allFinite(together.values)) return false;
  const isSame =
    alone.values.length === together.values.length &&
    alone.values.every((value, position) => value === together.values[position]) &&
    (alone.indices ?? []).every((term, position) => term === together.indices?.[position]);
  if (isSame || precision === 'int8') return isSame;
  if (head === 'logit' || head === 'maxSim') {
    const [score = NaN, other = NaN] = [alone.values[0], together.values[0]];
    return Math.abs(score - other) <= maxScoreDifference[precision] * Math.max(1, Math.abs(score));
  }
  const expected = { values: [...alone.values], indices: alone.indices === null ? null : [...alone.indices] };
  return likenessTo(together, expected) >= minCompanyCosine[precision];
}
