/** Owns what the protocol demands of an answer, written from its rules and not from the server. */
import { isDeepStrictEqual } from 'node:util';
import { errorCatalogue } from '../../src/errors.ts';
import { marker } from './frames.ts';

/** Which ids an answer may have: the one of its call, or null where the protocol trusts none. */
type Ids = readonly unknown[];

/** What must come back for one text. */
export type Expectation =
  | { readonly kind: 'none' }
  | { readonly kind: 'single'; readonly ids: Ids }
  | { readonly kind: 'batch'; readonly members: readonly Ids[] };

/** Most calls of one array. */
const maxMembers = 64;
/** Only texts beyond it can be nested so deep that they are refused unread, without an id. @unit bytes */
const longText = 100_000;

const codes: ReadonlySet<unknown> = new Set(Object.values(errorCatalogue).map(({ code }) => code));
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Ids that may answer one frame; null for one that is never answered. */
function idsOf(value: unknown, isMember: boolean): Ids | null {
  if (!isObject(value)) return [null];
  const has = (name: string) => Object.hasOwn(value, name);
  const own = (name: string) => (has(name) ? value[name] : undefined);
  const id = own('id');
  if (has('id') && typeof id !== 'string' && typeof id !== 'number') return [null];
  const isMalformed = (has('jsonrpc') && own('jsonrpc') !== '2.0') || typeof own('method') !== 'string';
  const isResponse = !has('method') && (has('result') || has('error'));
  if (isMalformed) return [isMember || isResponse || !has('id') ? null : id];
  return has('id') ? [id] : null;
}

/** What one body or line must be answered with. */
export function expectationOf(bytes: Buffer): Expectation {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return { kind: 'single', ids: [null] };
  }
  const unread: Ids = bytes.length > longText ? [null] : [];
  if (!Array.isArray(value)) {
    const ids = idsOf(value, false);
    return ids === null ? { kind: 'none' } : { kind: 'single', ids: [...ids, ...unread] };
  }
  if (value.length === 0) return { kind: 'single', ids: [null] };
  const members = value.map((member) => idsOf(member, true)).filter((ids) => ids !== null);
  if (members.length === 0) return { kind: 'none' };
  return value.length > maxMembers ? { kind: 'single', ids: [null] } : { kind: 'batch', members };
}

/** What is wrong with one answer, whatever it answers. */
export function answerProblems(answer: unknown): string[] {
  if (!isObject(answer)) return ['an answer is not an object'];
  const { jsonrpc, id, result, error } = answer;
  const problems: string[] = [];
  if (jsonrpc !== '2.0') problems.push('an answer has no "jsonrpc":"2.0"');
  if (id !== null && typeof id !== 'string' && typeof id !== 'number') problems.push('an answer has no usable id');
  if ((result === undefined) === (error === undefined)) problems.push('an answer is neither a result nor an error');
  if (error !== undefined) problems.push(...errorProblems(error));
  return problems;
}

function errorProblems(error: unknown): string[] {
  if (!isObject(error)) return ['an error is not an object'];
  const { code, message, data } = error;
  const problems: string[] = [];
  if (!codes.has(code)) problems.push(`code ${String(code)} is not in the catalogue`);
  if (code === errorCatalogue.internal.code) problems.push('the server failed: -32603');
  if (typeof message !== 'string' || message === '') problems.push('an error has no message');
  // An option that is not supported is said back on purpose.
  const rest = { ...(isObject(data) ? data : {}), option: null };
  if (JSON.stringify([message, rest]).includes(marker)) problems.push('an error repeats a text of the caller');
  return problems;
}

const hasOneOf = (answer: unknown, ids: Ids): boolean =>
  isObject(answer) && ids.some((id) => isDeepStrictEqual(id, answer['id']));

/** What is wrong with what came back as a whole; `undefined` for nothing. */
export function judge(expected: Expectation, value: unknown): string[] {
  if (expected.kind === 'none') return value === undefined ? [] : ['something that needs no answer was answered'];
  if (value === undefined) return ['a call was not answered'];
  if (expected.kind === 'single' || !Array.isArray(value)) {
    const ids = expected.kind === 'single' ? expected.ids : [];
    return hasOneOf(value, ids)
      ? answerProblems(value)
      : ['an answer has not the id of its call', ...answerProblems(value)];
  }
  if (value.length !== expected.members.length) {
    return [`${value.length} answers for ${expected.members.length} calls of an array`];
  }
  return value.flatMap((answer, at) =>
    hasOneOf(answer, expected.members[at] ?? []) ? answerProblems(answer) : ['an answer stands in the wrong place'],
  );
}
