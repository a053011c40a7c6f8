/** Owns what a batch must fulfil before the engine sees it: an id out of range can end a process on some providers. */
import type { Head, ModelLoad, RunBatch, RunItem } from './protocol.ts';

/**
 * Why the batch must not run on a model whose graph has these inputs, or null. Names the position of the item, never
 * what it holds.
 */
export function batchProblem(
  batch: RunBatch,
  model: ModelLoad | undefined,
  inputNames: readonly string[],
): string | null {
  if (model === undefined) return `no model is loaded under the id ${batch.modelId}`;
  if (!hasHead(model, batch.head)) return `model ${batch.modelId} has no head ${batch.head}`;
  if (batch.head === 'maxSim') {
    const query = batch.queryRows;
    if (query === null) return 'maxSim needs query rows';
    if (!(query.dimension > 0) || query.values.length === 0 || query.values.length % query.dimension !== 0) {
      return 'the query rows are not a matrix of at least one row';
    }
  }
  for (const [position, item] of batch.items.entries()) {
    const problem = itemProblem(item, model, batch.head === 'maxSim') ?? maskProblem(item, inputNames);
    if (problem !== null) return `item ${position}: ${problem}`;
  }
  return null;
}

const hasHead = ({ heads, hiddenOutput }: ModelLoad, head: Head): boolean =>
  head === 'hidden' ? hiddenOutput !== undefined : heads.includes(head);

function itemProblem(item: RunItem, model: ModelLoad, needsRows: boolean): string | null {
  const tokens = item.ids.length;
  const maxTokens = Math.min(model.maxTokens, model.runPolicy.fixedTokens ?? Infinity);
  if (tokens < 1 || tokens > maxTokens) return `${tokens} tokens, allowed are 1 to ${maxTokens}`;
  if (!item.ids.every((id) => id >= 0 && id < model.vocabularySize)) {
    return `a token id is outside the vocabulary of ${model.vocabularySize}`;
  }
  if (item.typeIds !== null) {
    if (item.typeIds.length !== tokens) return `${item.typeIds.length} segment ids for ${tokens} tokens`;
    if (!item.typeIds.every((id) => id <= 1)) return 'a segment id is neither 0 nor 1';
  }
  for (const { keptRows } of [item, ...(item.sharedHeads ?? [])]) {
    if (keptRows?.every((row) => row >= 0 && row < tokens) === false) return 'a kept row is not a position of the text';
  }
  if (needsRows && item.keptRows?.length === 0) return 'no kept row to compare with';
  const lacking = item.sharedHeads?.find(({ head }) => !hasHead(model, head));
  return lacking === undefined ? null : `model ${model.modelId} has no head ${lacking.head}`;
}

function maskProblem({ ids, promptTokens = 0, attendedTokens }: RunItem, inputNames: readonly string[]): string | null {
  const isCount = (count: number) => Number.isInteger(count) && count >= 0 && count <= ids.length;
  if (!isCount(promptTokens)) return 'the prompt has more tokens than the text';
  if (attendedTokens === undefined || attendedTokens === ids.length) return null;
  if (!isCount(attendedTokens) || attendedTokens === 0) return 'the attended tokens are not a part of the text';
  return inputNames.includes('attention_mask') ? null : 'the graph has no attention_mask to leave tokens out with';
}
