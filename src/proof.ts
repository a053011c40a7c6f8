/** Owns what a model must show on a device before it serves there. */
import type { ProofRun } from './device/proof.ts';
import type { Head, RunBatch, RunItem, RunRow } from './executor/protocol.ts';
import type { ModelManifest, SelfCheck } from './model/manifest.ts';
import { toRunItem } from './task/run-texts.ts';
import { cosine, sparseCosine } from './tensor/cosine.ts';
import { allFinite } from './tensor/finite.ts';
import type { TextTokenizer } from './tokenize/tokenizer.ts';

/** Texts for heads without a stored answer: what matters is that they run, and differ. */
const probeQuery = 'how does heat move through a plate';
const probePassages = ['heat flows through the plate by conduction', 'the committee met on a tuesday'] as const;

/** Proof runs of a model: its stored answers, and a plain run of every head that has none. */
export async function proofRunsOf(model: ModelManifest, tokenizer: TextTokenizer): Promise<ProofRun[]> {
  const checked = model.selfChecks.map((check) => compareWithStored(model, check));
  const unchecked = model.heads.filter((head) => !model.selfChecks.some((check) => check.head === head));
  return [...checked, ...(await Promise.all(unchecked.map((head) => plainRun(model, head, tokenizer))))];
}

const batchOf = (model: ModelManifest, head: Head, items: readonly RunItem[]): RunBatch => ({
  modelId: model.modelId,
  head,
  items,
  queryRows: head === 'maxSim' ? unitRow(model.hiddenSize) : null,
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
  const texts =
    head === 'logit'
      ? await tokenizer.tokenizePairs(probeQuery, probePassages)
      : await tokenizer.tokenize(probePassages);
  return {
    batch: batchOf(
      model,
      head,
      texts.map((text) => toRunItem(text, null)),
    ),
    judge(rows) {
      const label = `${model.modelId} (${head}, ${model.precision})`;
      if (!rows.every((row) => allFinite(row.values))) return `${label} gave values that are not numbers`;
      const [first, second] = rows;
      // A head that does not fit its model often gives the same value for everything.
      const isConstant = head === 'logit' && first?.values[0] === second?.values[0];
      return isConstant ? `${label} gave the same score for different passages` : null;
    },
  };
}
