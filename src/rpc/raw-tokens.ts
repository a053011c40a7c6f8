/** Owns the raw text of ids and of lists: the characters that JSON.parse would alter. */
import { JsonScanner, type ScanCounts, type ScanLimits } from './json-scanner.ts';

/** Raw JSON text of the members that are echoed or compared; undefined where absent or not a scalar. */
export interface RawTokens {
  readonly id: string | undefined;
  /** `params.id`, the target of a cancel. */
  readonly paramsId: string | undefined;
  readonly nonce: string | undefined;
  readonly progressToken: string | undefined;
}

/** What one scan found. */
export interface FrameScan extends ScanCounts {
  /** One entry for a single frame, one per member for an array. */
  readonly members: readonly RawTokens[];
  readonly isArray: boolean;
}

const noTokens: RawTokens = { id: undefined, paramsId: undefined, nonce: undefined, progressToken: undefined };

/**
 * Scans a frame without recursion, whatever its depth. On text that is not JSON the result is meaningless but
 * the scan still ends: parse first or afterwards, and use the tokens only when that succeeded.
 * Repeated member names: the last one wins, as in JSON.parse.
 */
export function scanFrame(text: string, limits: ScanLimits): FrameScan {
  const scanner = new JsonScanner(text, limits);
  const members: RawTokens[] = [];
  const isArray = scanner.isAtList();
  if (isArray) scanner.eachElement(() => members.push(callTokens(scanner, 2)));
  else members.push(callTokens(scanner, 1));
  // What follows the frame is an error for JSON.parse, yet it counts: it is parsed too.
  scanner.skipRest();
  return { members, isArray, ...scanner.counts() };
}

function callTokens(scanner: JsonScanner, depth: number): RawTokens {
  let id: string | undefined;
  let params = noTokens;
  const isObject = scanner.eachMember(depth, (key) => {
    if (key === 'id') id = scanner.scalar(depth + 1);
    else if (key === 'params') params = paramsTokens(scanner, depth + 1);
    else scanner.skipValue(depth + 1);
  });
  return isObject ? { ...params, id } : noTokens;
}

function paramsTokens(scanner: JsonScanner, depth: number): RawTokens {
  let paramsId: string | undefined;
  let nonce: string | undefined;
  let progressToken: string | undefined;
  scanner.eachMember(depth, (key) => {
    if (key === 'id') paramsId = scanner.scalar(depth + 1);
    else if (key === 'nonce') nonce = scanner.scalar(depth + 1);
    else if (key === '_meta') {
      progressToken = undefined;
      scanner.eachMember(depth + 1, (metaKey) => {
        if (metaKey === 'progressToken') progressToken = scanner.scalar(depth + 2);
        else scanner.skipValue(depth + 2);
      });
    } else scanner.skipValue(depth + 1);
  });
  return { id: undefined, paramsId, nonce, progressToken };
}

const unbounded: ScanLimits = { depth: Infinity, values: Infinity, names: Infinity, literal: Infinity };

/**
 * The raw text of each element of the list that is a member of an object; of several of its name the last one counts,
 * and what is no list has none.
 */
export function rawElementsOf(text: string, name: string): string[] {
  const scanner = new JsonScanner(text, unbounded);
  let elements: string[] = [];
  scanner.eachMember(1, (key) => {
    const isMeant = key === name;
    if (isMeant) elements = [];
    if (isMeant && scanner.isAtList()) scanner.eachElement(() => elements.push(scanner.raw(3)));
    else scanner.skipValue(2);
  });
  return elements;
}
