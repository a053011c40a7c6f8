/** Owns the distrust of an executor's answers: what is not exactly the answer to the question is garbage. */
import type {
  ExecutorMessage,
  Head,
  NodePlacement,
  RunBatch,
  RunFailureCause,
  RunItem,
  RunRow,
} from '../executor/protocol.ts';

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
  const { type, executionProvider, loadMs, reason, placements } = message;
  if (type === 'loadFailed' && typeof reason === 'string') return { isValid: true, reply: { type, reason } };
  if (type === 'loaded' && typeof executionProvider === 'string' && typeof loadMs === 'number') {
    if (!Array.isArray(placements) || !placements.every(isPlacement)) return garbage('it did not say what runs where');
    return { isValid: true, reply: { type, executionProvider, loadMs, placements } };
  }
  return garbage('it answered a load with another message');
}

/** The message as an answer to the run `runId` of `batch`. */
export function readRunReply(message: unknown, runId: number, batch: RunBatch): CheckedReply<RunReply> {
  if (!isRecord(message)) return garbage('it answered with something that is not a message');
  const { type, rows, computeMs, residentBytes, reason, kind } = message;
  if (message['runId'] !== runId) return garbage('it answered another run than the one it was asked for');
  if (type === 'runFailed' && typeof reason === 'string' && isFailureCause(kind)) {
    return { isValid: true, reply: { type, runId, reason, kind } };
  }
  if (type !== 'result') return garbage('it answered a run with another message');
  if (typeof computeMs !== 'number' || !Number.isFinite(computeMs)) return garbage('its result has no time');
  if (typeof residentBytes !== 'number' || !(residentBytes >= 0)) return garbage('its result does not say its memory');
  if (!Array.isArray(rows) || rows.length !== batch.items.length) {
    return garbage(`it did not answer ${batch.items.length} items with as many rows`);
  }
  const fits = batch.items.every((item, position) => fitsItem(rows[position], item, batch.head));
  if (!fits) return garbage(`a row of its result does not have the form of the head ${batch.head}`);
  return { isValid: true, reply: { type, runId, rows: rows as readonly RunRow[], computeMs, residentBytes } };
}

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

const failureCauses: readonly unknown[] = ['failed', 'outOfMemory', 'deviceLost'] satisfies RunFailureCause[];
const isFailureCause = (value: unknown): value is RunFailureCause => failureCauses.includes(value);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
