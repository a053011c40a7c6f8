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
import type { Matrix, RunBatch, RunItem, RunRow } from './protocol.ts';
import { keepRows, packTerms, packTopTerms } from './rows.ts';
import type { LoadedModel, LoadedModels } from './session.ts';

/** What a run gave, and how long the engine took. */
export interface RunOutcome {
  readonly rows: readonly RunRow[];
  /** @unit ms */
  readonly computeMs: number;
}

/** Runs batches on the loaded models, one call at a time. */
export type RunBatchNow = (batch: RunBatch) => Promise<RunOutcome>;

/** One pass through a model's graph. */
interface Pass {
  readonly engine: EngineTimer;
  readonly model: LoadedModel;
  readonly batch: RunBatch;
  readonly size: PlannedRun;
  readonly items: readonly RunItem[];
  /** The named outputs for these items. */
  readonly run: (outputNames: readonly string[]) => Promise<Output[]>;
}

/**
 * A runner over loaded models. Each call checks the whole batch before the engine sees any of it, and fails as a whole.
 * @throws Error whose message holds nothing of the request
 */
export function createRunner(models: LoadedModels, limits: RunLimits = cpuRunLimits): RunBatchNow {
  const feedTexts = createFeeder();
  return async (batch) => {
    const model = models.get(batch.modelId);
    const inputNames = model?.session.inputNames ?? [];
    const problem = batchProblem(batch, model?.load, inputNames);
    if (problem !== null || model === undefined) throw new Error(problem ?? 'no model');
    const engine = createEngineTimer();
    const lengths = batch.items.map(({ ids }) => ids.length);
    const rows = new Map<number, RunRow>();
    for (const size of planRuns(lengths, batch.head, model.load, limits)) {
      const items = size.positions.flatMap((position) => batch.items[position] ?? []);
      const run = (outputNames: readonly string[]) =>
        engine.run(model.session, feedTexts(items, size, model.load, inputNames), outputNames);
      const found = await runPass({ engine, model, batch, size, items, run });
      for (const [index, position] of size.positions.entries()) {
        const row = found[index];
        if (row !== undefined) rows.set(position, row);
      }
    }
    return { rows: batch.items.map((_, position) => rowAt(rows, position)), computeMs: engine.elapsedMs() };
  };
}

function rowAt(rows: ReadonlyMap<number, RunRow>, position: number): RunRow {
  const row = rows.get(position);
  if (row === undefined) throw new Error(`item ${position} was in no run`);
  return row;
}

/** One row for each item of the pass. */
async function runPass(pass: Pass): Promise<RunRow[]> {
  const { batch, model, items, size } = pass;
  if (batch.head === 'sparse' && model.load.sparse !== null && model.load.sparse.topTerms !== null) {
    return topTermRows(pass);
  }
  const output = await runHead(pass);
  const rows: RunRow[] = [];
  for (const [index, item] of items.entries()) {
    switch (batch.head) {
      case 'dense':
      case 'logit':
        rows.push({ values: textValues(output, index, size.texts), indices: null });
        break;
      case 'sparse':
        rows.push(sparseRow(pass, output, index, item));
        break;
      case 'rows':
        rows.push({ values: keptRows(pass, output, index, item).values, indices: null });
        break;
      case 'maxSim':
        rows.push({ values: await maxSim(pass, keptRows(pass, output, index, item)), indices: null });
    }
  }
  return rows;
}

async function runHead({ run, batch }: Pass): Promise<Output> {
  const [output] = await run([graphOutputOf(batch.head)]);
  if (output === undefined) throw new Error(`the graph gave no output for the head ${batch.head}`);
  return output;
}

function keptRows({ size }: Pass, output: Output, index: number, item: RunItem): Matrix {
  const rows = tokenRows(output, index, size, item.ids.length);
  return { ...rows, values: keepRows(rows, item.keptRows) };
}

function sparseRow({ model, size }: Pass, output: Output, index: number, item: RunItem): RunRow {
  const { sparse } = model.load;
  if (sparse?.form !== 'tokens') return packTerms(textValues(output, index, size.texts));
  const weights = tokenRows(output, index, size, item.ids.length).values;
  return mergeTokenWeights(item.ids, weights, new Set(sparse.unweightedIds));
}

/** Sparse rows from the heaviest terms; the full rows are copied only where a text has more terms than those. */
async function topTermRows(pass: Pass): Promise<RunRow[]> {
  const { run, items, size } = pass;
  const [weights, ids] = await run([topTermOutputs.weights, topTermOutputs.ids]);
  if (weights === undefined || ids === undefined) throw new Error('the graph gave no heaviest terms');
  const packed = items.map((_, index) =>
    packTopTerms(textValues(weights, index, size.texts), textValues(ids, index, size.texts)),
  );
  const full = packed.includes(null) ? await runHead(pass) : null;
  return packed.flatMap((row, index) => row ?? (full === null ? [] : packTerms(textValues(full, index, size.texts))));
}

async function maxSim({ engine, model, batch }: Pass, passage: Matrix): Promise<Float32Array> {
  const query = batch.queryRows;
  if (query === null || model.maxSimSession === null) throw new Error('maxSim needs query rows and a MaxSim graph');
  if (query.dimension !== passage.dimension) {
    throw new Error(`query rows have ${query.dimension} values, passage rows ${passage.dimension}`);
  }
  const feeds = { query_rows: matrixTensor(query), passage_rows: matrixTensor(passage) };
  const [output] = await engine.run(model.maxSimSession, feeds, [headOutputs.maxSim]);
  if (output === undefined) throw new Error('the MaxSim graph gave no output');
  return output.values;
}

function matrixTensor(matrix: Matrix): Tensor {
  return new Tensor('float32', matrix.values, [matrix.values.length / matrix.dimension, matrix.dimension]);
}
