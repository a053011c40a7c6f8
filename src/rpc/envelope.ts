/** Owns the JSON-RPC envelope: text to one call or a list of calls, each judged on its own. */
import { scanFrame, type RawTokens } from './raw-tokens.ts';
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

/** Deepest nesting that is parsed; V8 needs about 20 ms for it, and seconds for a hundred times more. */
export const maxJsonDepth = 100_000;
/** Most JSON values in one frame: three times what the largest allowed batch needs. */
export const maxJsonValues = 500_000;

/** Reads one frame; never throws, whatever the text. */
export function parseFrame(text: string): Frame {
  const scan = scanFrame(text);
  if (scan.depth > maxJsonDepth) {
    return { kind: 'refused', errorName: 'parse', message: `JSON is nested deeper than ${maxJsonDepth} levels` };
  }
  if (scan.values > maxJsonValues) {
    return {
      kind: 'refused',
      errorName: 'tooLarge',
      message: `JSON holds more than ${maxJsonValues} values (${scan.values})`,
    };
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
  const frame = new Map<string, unknown>(Object.entries(value));
  const id = frame.get('id');
  const usableId = typeof id === 'string' || typeof id === 'number' ? tokens.id : undefined;
  // Echoing the id of something shaped like a response would look like an answer to the peer's own call.
  const isResponse = !frame.has('method') && (frame.has('result') || frame.has('error'));
  const rawId = isResponse ? 'null' : (usableId ?? 'null');
  if (frame.has('id') && usableId === undefined) return invalid('id must be a string or a number');
  if (frame.has('jsonrpc') && frame.get('jsonrpc') !== '2.0') return invalid('jsonrpc must be the string 2.0', rawId);
  const method = frame.get('method');
  if (typeof method !== 'string') return invalid('method must be a string', rawId);
  const params = frame.get('params') ?? undefined;
  if (usableId === undefined) return { kind: 'notification', method, params, tokens };
  return { kind: 'request', rawId: usableId, method, params, tokens };
}
