/** Owns the JSON-RPC envelope: text to one call or a list of calls, each judged on its own. */
import { readLenientObject } from './params.ts';
import { readJson } from './json-text.ts';
import type { RawTokens } from './raw-tokens.ts';
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

/** Reads one frame; never throws, whatever the text. */
export function parseFrame(text: string): Frame {
  const read = readJson(text);
  if ('errorName' in read) return { kind: 'refused', ...read };
  const { value, scan } = read;
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
