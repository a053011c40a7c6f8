/** Owns the distrust of an executor's answers: what is not exactly the answer to the question is garbage. */
import { headOutputs } from '../executor/protocol.ts';
import type {
  ExecutorMessage,
  Head,
  HeadTimings,
  NodePlacement,
  RunFailureCause,
  RunItem,
  RunRow,
} from '../executor/protocol.ts';
import type { OpenRuns } from './open-runs.ts';

/** A reply that fits the question, or why it does not. */
export type CheckedReply<Reply> =
  { readonly isValid: true; readonly reply: Reply } | { readonly isValid: false; readonly reason: string };

/** An answer to `load`. */
export type LoadReply = Extract<ExecutorMessage, { type: 'loaded' | 'loadFailed' }>;

/** An answer to `run`. */
export type RunReply = Extract<ExecutorMessage, { type: 'result' | 'runFailed' }>;

const garbage = (reason: string): { readonly isValid: false; readonly reason: string } => ({ isValid: false, reason });

/** The message as an answer to `load`. */
export function readLoadReply(message: unknown): CheckedReply<LoadReply> {
  if (!isRecord(message)) return garbage('it answered with something that is not a message');
  const { type, executionProvider, loadMs, reason, placements, timings } = message;
  if (type === 'loadFailed' && typeof reason === 'string') return { isValid: true, reply: { type, reason } };
  if (type === 'loaded' && typeof executionProvider === 'string' && typeof loadMs === 'number') {
    if (!Array.isArray(placements) || !placements.every(isPlacement)) return garbage('it did not say what runs where');
    if (!Array.isArray(timings) || !timings.every(isHeadTimings))
      return garbage('it did not say how long its runs take');
    return { isValid: true, reply: { type, executionProvider, loadMs, placements, timings } };
  }
  return garbage('it answered a load with another message');
}

/** The message as an answer to one of the open runs. */
export function readRunReply(message: unknown, runs: OpenRuns): CheckedReply<RunReply> {
  if (!isRecord(message)) return garbage('it answered with something that is not a message');
  const { type, rows, computeMs, paddedTokens, residentBytes, reason, kind, nextRunId } = message;
  const run = runs.find(message['runId']);
  if (run === undefined) return garbage('it answered a run that it was not asked for');
  const { runId, batch, skipped } = run;
  if (!isNextRun(nextRunId, runId, runs)) return garbage('it goes on with a run that it was not asked for');
  if (type === 'runFailed' && typeof reason === 'string' && isFailureCause(kind)) {
    return { isValid: true, reply: { type, runId, reason, kind, nextRunId } };
  }
  if (type !== 'result') return garbage('it answered a run with another message');
  if (!isAmount(computeMs)) return garbage('its result has no time');
  if (!isAmount(paddedTokens)) return garbage('its result does not say how many tokens it ran');
  if (!isAmount(residentBytes)) return garbage('its result does not say its memory');
  if (!Array.isArray(rows) || rows.length !== batch.items.length) {
    return garbage(`it did not answer ${batch.items.length} items with as many rows`);
  }
  const fits = batch.items.every(
    (item, position) =>
      (rows[position] === null && skipped.has(position)) || fitsItem(rows[position], item, batch.head),
  );
  if (!fits) return garbage(`a row of its result does not have the form of the head ${batch.head}`);
  const given = rows as readonly (RunRow | null)[];
  return { isValid: true, reply: { type, runId, rows: given, computeMs, paddedTokens, residentBytes, nextRunId } };
}

const isAmount = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < Infinity;

const isNextRun = (next: unknown, runId: number, runs: OpenRuns): next is number | null =>
  next === null || (next !== runId && runs.find(next) !== undefined);

function fitsItem(row: unknown, item: RunItem, head: Head): boolean {
  if (!isRecord(row) || !fitsHead(row, item.keptRows?.length ?? item.ids.length, head)) return false;
  const wanted = item.sharedHeads ?? [];
  const shared = row['shared'] ?? [];
  return (
    Array.isArray(shared) &&
    shared.length === wanted.length &&
    wanted.every((wish, at) => fitsItem(shared[at], { ...item, keptRows: wish.keptRows, sharedHeads: [] }, wish.head))
  );
}

function fitsHead({ values, indices }: Record<string, unknown>, rowCount: number, head: Head): boolean {
  if (!(values instanceof Float32Array)) return false;
  if (head === 'sparse') return indices instanceof Int32Array && indices.length === values.length;
  if (indices !== null) return false;
  switch (head) {
    case 'dense':
      return values.length > 0;
    case 'rows':
    case 'hidden':
      return rowCount === 0 ? values.length === 0 : values.length > 0 && values.length % rowCount === 0;
    case 'logit':
    case 'maxSim':
      return values.length === 1;
  }
}

function isPlacement(value: unknown): value is NodePlacement {
  if (!isRecord(value) || typeof value['modelId'] !== 'string') return false;
  const nodes: unknown = value['foreignNodes'];
  return Array.isArray(nodes) && nodes.every((node) => typeof node === 'string');
}

function isHeadTimings(value: unknown): value is HeadTimings {
  if (!isRecord(value) || typeof value['modelId'] !== 'string' || !isHead(value['head'])) return false;
  const timings: unknown = value['timings'];
  return Array.isArray(timings) && timings.every(isTiming);
}

function isTiming(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { texts, tokens, ms } = value;
  return isCount(texts) && isCount(tokens) && isAmount(ms);
}

const isHead = (value: unknown): boolean => typeof value === 'string' && Object.hasOwn(headOutputs, value);
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;

const failureCauses: readonly unknown[] = ['failed', 'outOfMemory', 'deviceLost'] satisfies RunFailureCause[];
const isFailureCause = (value: unknown): value is RunFailureCause => failureCauses.includes(value);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
