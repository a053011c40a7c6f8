/** Owns a run: the texts of a batch through the graph, in as many passes as the model's policy asks for. */
import { Tensor } from 'onnxruntime-node';
import { mergeTokenWeights } from '../tensor/token-terms.ts';
import { batchProblem } from './batch-check.ts';
import { createEngineTimer } from './engine-timer.ts';
import type { EngineTimer } from './engine-timer.ts';
import { graphOutputOf } from './graph-check.ts';
import { createFeeder } from './inputs.ts';
import { textValues, tokenRows } from './outputs.ts';
import type { Output } from './outputs.ts';
import { cpuRunLimits, planRuns } from './plan.ts';
import type { PlannedRun, RunLimits } from './plan.ts';
import { headOutputs, topTermOutputs } from './protocol.ts';
import type { Head, Matrix, RunBatch, RunItem, RunRow } from './protocol.ts';
import { keepRows, mayLackTerms, packTerms, packTopTerms } from './rows.ts';
import type { LoadedModel, LoadedModels } from './session.ts';

/** What a run gave, and how long the engine took. */
export interface RunOutcome {
  /** One for each item; null where it was skipped. */
  readonly rows: readonly (RunRow | null)[];
  /** @unit ms */
  readonly computeMs: number;
  /** Tokens that went through the graph, padding and copies included. */
  readonly paddedTokens: number;
}

/** Runs batches on the loaded models, one call at a time; what is in `skipped` when its turn comes is left out. */
export type RunBatchNow = (batch: RunBatch, skipped?: ReadonlySet<number>) => Promise<RunOutcome>;

const nothingSkipped: ReadonlySet<number> = new Set();

/** One pass through a model's graph. */
interface Pass {
  readonly engine: EngineTimer;
  readonly model: LoadedModel;
  readonly batch: RunBatch;
  readonly size: PlannedRun;
  readonly items: readonly RunItem[];
  /** The named outputs for these items. */
  readonly run: (outputNames: readonly string[]) => Promise<ReadonlyMap<string, Output>>;
}

/** Where the outputs of a pass are found by their names. */
type Outputs = ReadonlyMap<string, Output>;

/**
 * A runner over loaded models. Each call checks the whole batch before the engine sees any of it, and fails as a whole.
 * @throws Error whose message holds nothing of the request
 */
export function createRunner(models: LoadedModels, limits: RunLimits = cpuRunLimits): RunBatchNow {
  const feedTexts = createFeeder();
  return async (batch, skipped = nothingSkipped) => {
    const model = models.get(batch.modelId);
    const inputNames = model?.session.inputNames ?? [];
    const problem = batchProblem(batch, model?.load, inputNames);
    if (problem !== null || model === undefined) throw new Error(problem ?? 'no model');
    const engine = createEngineTimer();
    const lengths = batch.items.map(({ ids }) => ids.length);
    const rows = new Map<number, RunRow>();
    let paddedTokens = 0;
    for (const size of planRuns(lengths, batch.head, model.load, limits)) {
      if (size.positions.every((position) => skipped.has(position))) continue;
      paddedTokens += size.texts * size.tokens;
      const items = size.positions.flatMap((position) => batch.items[position] ?? []);
      const run = (outputNames: readonly string[]) =>
        engine.run(model.session, feedTexts(items, size, model.load, inputNames), outputNames);
      const found = await runPass({ engine, model, batch, size, items, run });
      for (const [index, position] of size.positions.entries()) {
        const row = found[index];
        if (row !== undefined) rows.set(position, row);
      }
    }
    return {
      rows: batch.items.map((_, position) => rows.get(position) ?? rowOfSkipped(position, skipped)),
      computeMs: engine.elapsedMs(),
      paddedTokens,
    };
  };
}

function rowOfSkipped(position: number, skipped: ReadonlySet<number>): null {
  if (!skipped.has(position)) throw new Error(`item ${position} was in no run`);
  return null;
}

/** Whether the heaviest terms are read instead of the full row. */
const readsTopTerms = (head: Head, { load }: LoadedModel): boolean =>
  head === 'sparse' && (load.sparse?.topTerms ?? null) !== null;

/** One row for each item of the pass; every head that any of them wants is copied from the one run. */
async function runPass(pass: Pass): Promise<RunRow[]> {
  const { batch, model, items, run } = pass;
  const heads = new Set([batch.head, ...items.flatMap(({ sharedHeads = [] }) => sharedHeads.map(({ head }) => head))]);
  const outputs = new Map(await run([...heads].flatMap((head) => outputNamesOf(head, model))));
  if ([...heads].some((head) => readsTopTerms(head, model))) await addFullTerms(pass, outputs);
  const rows: RunRow[] = [];
  for (const [index, item] of items.entries()) {
    const row = await headRow(pass, outputs, index, item, batch.head);
    const shared: RunRow[] = [];
    for (const { head, keptRows } of item.sharedHeads ?? []) {
      shared.push(await headRow(pass, outputs, index, { ...item, keptRows }, head));
    }
    rows.push(shared.length === 0 ? row : { ...row, shared });
  }
  return rows;
}

const outputNamesOf = (head: Head, model: LoadedModel): string[] =>
  readsTopTerms(head, model) ? [topTermOutputs.weights, topTermOutputs.ids] : [graphOutputOf(head, model.load)];

/** The full rows of terms are copied only where a text has more terms than the heaviest ones that were read. */
async function addFullTerms({ run, items, size }: Pass, outputs: Map<string, Output>): Promise<void> {
  const weights = outputNamed(outputs, topTermOutputs.weights);
  if (!items.some((_, index) => mayLackTerms(textValues(weights, index, size.texts)))) return;
  for (const [name, output] of await run([headOutputs.sparse])) outputs.set(name, output);
}

function topTermsOf(outputs: Outputs, index: number, { texts }: PlannedRun): RunRow | null {
  const weights = outputNamed(outputs, topTermOutputs.weights);
  const ids = outputNamed(outputs, topTermOutputs.ids);
  return packTopTerms(textValues(weights, index, texts), textValues(ids, index, texts));
}

function outputNamed(outputs: Outputs, name: string): Output {
  const output = outputs.get(name);
  if (output === undefined) throw new Error(`the graph gave no output ${name}`);
  return output;
}

/** What one head gave for one item. */
async function headRow(pass: Pass, outputs: Outputs, index: number, item: RunItem, head: Head): Promise<RunRow> {
  const { size, model } = pass;
  const output = () => outputNamed(outputs, graphOutputOf(head, model.load));
  switch (head) {
    case 'dense':
    case 'logit':
      return { values: textValues(output(), index, size.texts), indices: null };
    case 'sparse':
      return sparseRow(pass, outputs, index, item);
    case 'rows':
    case 'hidden':
      return { values: keptRows(pass, output(), index, item).values, indices: null };
    case 'maxSim':
      return { values: await maxSim(pass, keptRows(pass, output(), index, item)), indices: null };
  }
}

function keptRows({ size }: Pass, output: Output, index: number, item: RunItem): Matrix {
  const rows = tokenRows(output, index, size, item.ids.length);
  return { ...rows, values: keepRows(rows, item.keptRows) };
}

function sparseRow({ model, size }: Pass, outputs: Outputs, index: number, item: RunItem): RunRow {
  const { sparse } = model.load;
  const topTerms = readsTopTerms('sparse', model) ? topTermsOf(outputs, index, size) : null;
  if (topTerms !== null) return topTerms;
  const output = outputNamed(outputs, headOutputs.sparse);
  if (sparse?.form !== 'tokens') return packTerms(textValues(output, index, size.texts));
  const weights = tokenRows(output, index, size, item.ids.length).values;
  return mergeTokenWeights(item.ids, weights, new Set(sparse.unweightedIds));
}

async function maxSim({ engine, model, batch }: Pass, passage: Matrix): Promise<Float32Array> {
  const query = batch.queryRows;
  if (query === null || model.maxSimSession === null) throw new Error('maxSim needs query rows and a MaxSim graph');
  if (query.dimension !== passage.dimension) {
    throw new Error(`query rows have ${query.dimension} values, passage rows ${passage.dimension}`);
  }
  const feeds = { query_rows: matrixTensor(query), passage_rows: matrixTensor(passage) };
  const outputs = await engine.run(model.maxSimSession, feeds, [headOutputs.maxSim]);
  return outputNamed(outputs, headOutputs.maxSim).values;
}

function matrixTensor(matrix: Matrix): Tensor {
  return new Tensor('float32', matrix.values, [matrix.values.length / matrix.dimension, matrix.dimension]);
}
