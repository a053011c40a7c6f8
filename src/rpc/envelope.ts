/** Owns the JSON-RPC envelope: text to one call or a list of calls, each judged on its own. */
import { readLenientObject } from './params.ts';
import { scanFrame, type RawTokens, type ScanLimits } from './raw-tokens.ts';
import type { ErrorName } from '../errors.ts';

/** A frame that wants an answer. */
export interface RequestMember {
  readonly kind: 'request';
  /** Raw JSON text of the id, echoed character by character. */
  readonly rawId: string;
  readonly method: string;
  /** Not yet validated. */
  readonly params: unknown;
  readonly tokens: RawTokens;
}

/** A frame that is never answered. */
export interface NotificationMember {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: unknown;
  readonly tokens: RawTokens;
}

/** A frame that is neither; answered `-32600`. */
export interface InvalidMember {
  readonly kind: 'invalid';
  /** Raw id to echo, `null` where there is none to trust. */
  readonly rawId: string;
  readonly message: string;
}

/** One JSON-RPC frame, or one element of an array of them. */
export type Member = RequestMember | NotificationMember | InvalidMember;

/** What a text turned out to be. */
export type Frame =
  | { readonly kind: 'single'; readonly member: Member }
  | { readonly kind: 'batch'; readonly members: readonly Member[] }
  | { readonly kind: 'refused'; readonly errorName: ErrorName; readonly message: string };

/**
 * Bounds of one frame: V8 parses such nesting in about 20 ms and needs seconds for a hundred times more; the largest
 * batch of text blocks has two thirds of these values and names.
 */
export const frameLimits: ScanLimits = { depth: 100_000, values: 600_000, names: 400_000, literal: 4096 };

const excesses: Readonly<Record<keyof ScanLimits, { errorName: ErrorName; what: string }>> = {
  depth: { errorName: 'parse', what: 'is nested deeper than' },
  values: { errorName: 'tooLarge', what: 'holds more values than' },
  names: { errorName: 'tooLarge', what: 'holds more member names than' },
  literal: { errorName: 'tooLarge', what: 'holds a number with more characters than' },
};

/** Reads one frame; never throws, whatever the text. */
export function parseFrame(text: string): Frame {
  const scan = scanFrame(text, frameLimits);
  if (scan.excess !== null) {
    const { errorName, what } = excesses[scan.excess];
    return { kind: 'refused', errorName, message: `The JSON ${what} ${frameLimits[scan.excess]}` };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'refused', errorName: 'parse', message: 'The text is not valid JSON' };
  }
  if (!Array.isArray(value)) return { kind: 'single', member: readMember(value, scan.members[0]) };
  if (value.length === 0) {
    return { kind: 'refused', errorName: 'invalidRequest', message: 'A batch must have at least one member' };
  }
  const members = value.map((element, index) => readMember(element, scan.members[index]));
  return { kind: 'batch', members: members.map(withoutEchoOfInvalid) };
}

/** In a batch a malformed member is answered with id null, even where it has one. */
function withoutEchoOfInvalid(member: Member): Member {
  return member.kind === 'invalid' ? { ...member, rawId: 'null' } : member;
}

function readMember(value: unknown, tokens: RawTokens | undefined): Member {
  const invalid = (message: string, rawId = 'null'): InvalidMember => ({ kind: 'invalid', rawId, message });
  if (typeof value !== 'object' || value === null || Array.isArray(value) || tokens === undefined) {
    return invalid('A call must be an object');
  }
  const has = (name: string) => Object.hasOwn(value, name);
  const frame = readLenientObject(value);
  const id = frame.get('id');
  const usableId = typeof id === 'string' || typeof id === 'number' ? tokens.id : undefined;
  // Echoing the id of something shaped like a response would look like an answer to the peer's own call.
  const isResponse = !has('method') && (has('result') || has('error'));
  const rawId = isResponse ? 'null' : (usableId ?? 'null');
  if (has('id') && usableId === undefined) return invalid('id must be a string or a number');
  if (has('jsonrpc') && frame.get('jsonrpc') !== '2.0') return invalid('jsonrpc must be the string 2.0', rawId);
  const method = frame.get('method');
  if (typeof method !== 'string') return invalid('method must be a string', rawId);
  const params = frame.get('params') ?? undefined;
  if (usableId === undefined) return { kind: 'notification', method, params, tokens };
  return { kind: 'request', rawId: usableId, method, params, tokens };
}
