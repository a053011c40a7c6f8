/** Owns reading one call's params: every check names the field, nothing unknown is refused. */
import { invalidField, ServiceError } from '../errors.ts';

/** Members of an object from outside: own ones only, so that no inherited name is ever read. */
export interface Members {
  get(name: string): unknown;
}

const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const noMembers: Members = { get: () => undefined };

/** A view of an object, without a copy: an object from outside may have hundreds of thousands of members. */
const membersOf = (value: object): Members => ({
  get: (name) => (Object.hasOwn(value, name) ? (value as Readonly<Record<string, unknown>>)[name] : undefined),
});

/**
 * The members of `params`; absent and null count as none.
 * @throws invalidParams, field `params`
 */
export const readParams = (params: unknown): Members => readOptionalObject(params, 'params');

/** Members of an optional object; anything else counts as absent, because a malformed `_meta` never fails a call. */
export function readLenientObject(value: unknown): Members {
  return isRecord(value) ? membersOf(value) : noMembers;
}

/**
 * Members of an optional object.
 * @throws invalidParams
 */
export function readOptionalObject(value: unknown, field: string): Members {
  if (value === undefined || value === null) return noMembers;
  if (!isRecord(value)) throw invalidField(field, 'must be an object');
  return membersOf(value);
}

/**
 * An optional text; null counts as absent.
 * @throws invalidParams
 */
export function readOptionalString(members: Members, name: string, field = name): string | null {
  const value = members.get(name) ?? null;
  if (value === null) return null;
  if (typeof value !== 'string') throw invalidField(field, 'must be a string');
  return value;
}

/**
 * An optional truth value; null counts as absent.
 * @throws invalidParams
 */
export function readOptionalBoolean(members: Members, name: string, field = name): boolean | null {
  const value = members.get(name) ?? null;
  if (value === null) return null;
  if (typeof value !== 'boolean') throw invalidField(field, 'must be true or false');
  return value;
}

/**
 * An optional whole number of at least 1; `2.0` counts, `true` and `"2"` do not.
 * @throws invalidParams
 */
export function readOptionalCount(members: Members, name: string, field = name): number | null {
  const value = members.get(name) ?? null;
  if (value === null) return null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) {
    throw invalidField(field, 'must be a whole number of at least 1');
  }
  return value;
}

/** An enumerated option: its value, or the first of `supported` where it is absent. */
export interface OptionChoice<T extends string> {
  readonly value: T;
  /** What was asked for instead, where `strict: false` allowed the default. */
  readonly replaced: string | null;
}

/**
 * An option whose values are advertised; absent gives `supported[0]`.
 * @throws invalidParams where it is no string; unsupportedOption where the value is not advertised
 */
export function readOption<T extends string>(
  members: Members,
  name: string,
  supported: readonly [T, ...T[]],
  options: { field?: string; isStrict?: boolean } = {},
): OptionChoice<T> {
  const field = options.field ?? name;
  const value = readOptionalString(members, name, field);
  if (value === null) return { value: supported[0], replaced: null };
  if (options.isStrict === false && !isOneOf(value, supported)) return { value: supported[0], replaced: value };
  return { value: oneOf(value, supported, field), replaced: null };
}

const isOneOf = <T extends string>(value: string, supported: readonly T[]): value is T =>
  (supported as readonly string[]).includes(value);

/**
 * The value, where it is one of those that are supported.
 * @throws unsupportedOption
 */
export function oneOf<T extends string>(value: string, supported: readonly T[], field: string): T {
  if (isOneOf(value, supported)) return value;
  const message = `${field}: this value is not supported; use one of ${supported.join(', ')}`;
  throw new ServiceError('unsupportedOption', message, { option: value, field, supported });
}

/**
 * `kind` of the inputs.
 * @throws invalidParams, field `kind`
 */
export function readKind(members: Members): 'query' | 'document' | null {
  const value = members.get('kind') ?? null;
  if (value === null || value === 'query' || value === 'document') return value;
  throw invalidField('kind', 'must be query or document');
}

/** A list of texts as the caller sent it. */
export interface TextList {
  readonly texts: readonly string[];
  /** Member it stood under. */
  readonly name: string;
  /**
   * Enforces an advertised limit; a step of its own, because options are judged before limits.
   * @throws invalidParams with `limit` and `received`
   */
  readonly checkCount: (limit: number) => void;
}

/**
 * Refuses a list of more elements than the limit.
 * @throws invalidParams with `limit` and `received`
 */
export function checkCount({ length: received }: readonly unknown[], field: string, limit: number): void {
  if (received <= limit) return;
  throw invalidField(field, `has ${received} elements, the limit is ${limit}`, { limit, received });
}

/**
 * A required list of texts, under the first of its names that is not null.
 * @throws invalidParams (missing: field `missingName`; no list; bad element), unsupportedOption (a block that is no text)
 */
export function readTexts(members: Members, names: readonly [string, string], missingName: string): TextList {
  const name = names.find((candidate) => (members.get(candidate) ?? null) !== null);
  if (name === undefined) throw invalidField(missingName, 'is required: a list of strings');
  const list = members.get(name);
  if (!Array.isArray(list)) throw invalidField(name, 'must be a list of strings');
  const texts = list.map((element, index) => readText(element, `${name}[${index}]`));
  return {
    texts,
    name,
    checkCount: (limit) => {
      checkCount(texts, name, limit);
    },
  };
}

/**
 * One text: a string or a text block.
 * @throws invalidParams, unsupportedOption (another modality)
 */
export function readText(value: unknown, field: string): string {
  if (typeof value === 'string') return value;
  if (!isRecord(value)) throw invalidField(field, describeNonText(value));
  const block = membersOf(value);
  const type = block.get('type');
  if (typeof type !== 'string') throw invalidField(`${field}.type`, 'must be a string');
  if (type !== 'text') {
    throw new ServiceError('unsupportedOption', `${field}.type: this modality is not supported; use text`, {
      option: type,
      field: `${field}.type`,
      supported: ['text'],
    });
  }
  const text = block.get('text');
  if (typeof text !== 'string') throw invalidField(`${field}.text`, 'must be a string');
  return text;
}

/**
 * A required query: a string, a text block, or a list of text blocks (joined by a newline).
 * @throws invalidParams, unsupportedOption
 */
export function readQuery(members: Members, readPart: typeof readText = readText): string {
  const value = members.get('query') ?? null;
  if (value === null) throw invalidField('query', 'is required');
  if (!Array.isArray(value)) return readPart(value, 'query');
  return value.map((part: unknown, index) => readPart(part, `query[${index}]`)).join('\n');
}

function describeNonText(value: unknown): string {
  const isTokenIds = typeof value === 'number' || (Array.isArray(value) && value.some((id) => typeof id === 'number'));
  return isTokenIds
    ? 'must be a string; token ids are not accepted, send the text'
    : 'must be a string or a text block';
}
