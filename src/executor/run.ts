/** Owns a run: every text of a batch alone through the graph, so that no text ever sees its neighbours. */
import { Tensor } from 'onnxruntime-node';
import type { InferenceSession } from 'onnxruntime-node';
import { batchProblem } from './batch-check.ts';
import { createTextFeeder } from './inputs.ts';
import type { FeedText } from './inputs.ts';
import { headOutputs } from './protocol.ts';
import type { Matrix, RunBatch, RunItem, RunRow } from './protocol.ts';
import { keepRows, packTerms } from './rows.ts';
import { graphOutputOf } from './session.ts';
import type { LoadedModel, LoadedModels } from './session.ts';

/** What a run gave, and how long the engine took. */
export interface RunOutcome {
  readonly rows: readonly RunRow[];
  /** @unit ms */
  readonly computeMs: number;
}

/** Runs batches on the loaded models, one call at a time. */
export type RunBatchNow = (batch: RunBatch) => Promise<RunOutcome>;

/**
 * A runner over loaded models. Each call checks the whole batch before the engine sees any of it.
 * @throws Error whose message holds nothing of the request
 */
export function createRunner(models: LoadedModels): RunBatchNow {
  const feedText = createTextFeeder(Math.max(1, ...[...models.values()].map((model) => model.load.maxTokens)));
  return async (batch) => {
    const model = models.get(batch.modelId);
    const problem = batchProblem(batch, model?.load);
    if (problem !== null || model === undefined) throw new Error(problem ?? 'no model');
    const engine = createEngineTimer();
    const rows: RunRow[] = [];
    for (const item of batch.items) rows.push(await runItem(engine, model, feedText, batch, item));
    return { rows, computeMs: engine.elapsedMs() };
  };
}

async function runItem(
  engine: EngineTimer,
  model: LoadedModel,
  feedText: FeedText,
  batch: RunBatch,
  item: RunItem,
): Promise<RunRow> {
  const feeds = feedText(item, model.session.inputNames);
  const output = await engine.run(model.session, feeds, graphOutputOf(batch.head));
  switch (batch.head) {
    case 'dense':
    case 'logit':
      return { values: output.values, indices: null };
    case 'sparse':
      return packTerms(output.values);
    case 'rows':
      return { values: keepRows(checkRows(output, item), item.keptRows), indices: null };
    case 'maxSim': {
      const kept = keepRows(checkRows(output, item), item.keptRows);
      return { values: await maxSim(engine, model, batch, { ...output, values: kept }), indices: null };
    }
  }
}

async function maxSim(
  engine: EngineTimer,
  model: LoadedModel,
  batch: RunBatch,
  passage: Matrix,
): Promise<Float32Array> {
  const query = batch.queryRows;
  if (query === null || model.maxSimSession === null) throw new Error('maxSim needs query rows and a MaxSim graph');
  if (query.dimension !== passage.dimension) {
    throw new Error(`query rows have ${query.dimension} values, passage rows ${passage.dimension}`);
  }
  const feeds = { query_rows: matrixTensor(query), passage_rows: matrixTensor(passage) };
  return (await engine.run(model.maxSimSession, feeds, headOutputs.maxSim)).values;
}

function matrixTensor(matrix: Matrix): Tensor {
  return new Tensor('float32', matrix.values, [matrix.values.length / matrix.dimension, matrix.dimension]);
}

function checkRows(output: Matrix, item: RunItem): Matrix {
  if (output.values.length === item.ids.length * output.dimension) return output;
  throw new Error(`the graph gave ${output.values.length} values for ${item.ids.length} rows of ${output.dimension}`);
}

interface EngineTimer {
  run(session: InferenceSession, feeds: Record<string, Tensor>, outputName: string): Promise<Matrix>;
  elapsedMs(): number;
}

function createEngineTimer(): EngineTimer {
  let elapsedMs = 0;
  return {
    elapsedMs: () => elapsedMs,
    async run(session, feeds, outputName) {
      const startMs = performance.now();
      const outputs = await session.run(feeds, [outputName]);
      elapsedMs += performance.now() - startMs;
      const tensor = outputs[outputName];
      if (!(tensor?.data instanceof Float32Array)) throw new Error(`the output ${outputName} is not float32`);
      return { values: tensor.data, dimension: tensor.dims.at(-1) ?? 1 };
    },
  };
}
