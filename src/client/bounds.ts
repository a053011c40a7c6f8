/** Owns refusing numbers that bound nothing, for callers without types: of a client, of a call, of a result. */
import { refusal } from './error.ts';
import type { CallOptions, ClientOptions } from './options.ts';

/** Longest text of a wrong value in a message. */
const longestShown = 40;

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, longestShown));
  if (typeof value === 'number' || value === null) return String(value);
  return `a value of type ${typeof value}`;
}

const wrongBound = (field: string, rule: string, value: unknown, most?: number) =>
  refusal('invalidParams', `${field}: must be ${rule}, not ${shown(value)}`, {
    field,
    ...(most !== undefined && { limit: most }),
    ...(typeof value === 'number' && { received: value }),
  });

/**
 * Goes on only with a whole number of at least 1, or without any.
 * @throws invalidParams
 */
export function requireCount(field: string, value: unknown, most?: number): void {
  if (value === undefined) return;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= (most ?? Infinity)) return;
  const limit = most === undefined ? '' : ` and at most ${most}`;
  throw wrongBound(field, `a whole number of at least 1${limit}`, value, most);
}

/** Infinity is an amount: it bounds nothing, and says so. */
function requirePositive(field: string, value: unknown): void {
  if (value === undefined || (typeof value === 'number' && value > 0)) return;
  throw wrongBound(field, 'a number above 0', value);
}

function requireNotNegative(field: string, value: unknown): void {
  if (value === undefined || (typeof value === 'number' && value >= 0)) return;
  throw wrongBound(field, 'a number of at least 0', value);
}

/**
 * Checks every number among the options of a client.
 * @throws invalidParams
 */
export function requireBounds({ retry, ...options }: ClientOptions): void {
  requireCount('maxParallelRequests', options.maxParallelRequests);
  requireCount('maxTextsPerRequest', options.maxTextsPerRequest);
  requireCount('retry.maxAttempts', retry?.maxAttempts);
  requirePositive('maxAnswerBytes', options.maxAnswerBytes);
  requirePositive('answerTimeoutMs', options.answerTimeoutMs);
  requireNotNegative('retry.maxWaitMs', retry?.maxWaitMs);
}

/**
 * Checks the time that a call may take.
 * @throws invalidParams
 */
export function requireDeadline({ deadlineMs }: CallOptions): void {
  requirePositive('deadlineMs', deadlineMs);
}
