/** Owns reading what the routes of text-embeddings-inference have in common: inputs, truncation, prompt. */
import { invalidField, type ServiceError } from '../../../errors.ts';
import type { TaskMethod } from '../../../rpc/methods.ts';
import { checkCount, readOption, readOptionalBoolean, readOptionalString, type Members } from '../../../rpc/params.ts';
import type { ModelFacts, ServedFacts } from '../../../rpc/served-facts.ts';
import type { InputList, Truncation } from '../../../rpc/task-request.ts';
import type { CompatCall } from '../family.ts';

/** Ids of that service are unsigned 32-bit integers. */
const maxId = 0xffff_ffff;

/** That there is nothing in a member. */
export const emptyField = (field: string): ServiceError => invalidField(field, 'cannot be empty', { received: 0 });

/**
 * Refuses a list without an element, or with more than the limit.
 * @throws invalidParams
 */
export function checkFilledList(list: readonly unknown[], field: string, limit: number): void {
  if (list.length === 0) throw emptyField(field);
  checkCount(list, field, limit);
}

/**
 * A text that is not empty.
 * @throws invalidParams
 */
export function readFilledText(value: unknown, field: string, what = 'a string'): string {
  if (typeof value !== 'string') throw invalidField(field, `must be ${what}`);
  if (value === '') throw emptyField(field);
  return value;
}

/**
 * A list of token ids that is not empty.
 * @throws invalidParams
 */
export function readIds(list: readonly unknown[], field: string): number[] {
  if (list.length === 0) throw emptyField(field);
  return list.map((id, index) => {
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id <= maxId) return id;
    throw invalidField(`${field}[${index}]`, `must be a token id: a whole number from 0 to ${maxId}`);
  });
}

/** True where a list is the ids of one text: that is how it begins. */
export const isIdList = (list: readonly unknown[]): boolean => typeof list[0] === 'number';

/**
 * `inputs`: a text, the ids of one, or a list in which each is one of these. Ids are those of `/tokenize`: the special
 * tokens around them are taken away, because every input gets its own.
 * @throws invalidParams; the signal's reason
 */
export async function readInputs(members: Members, { served, signal }: CompatCall): Promise<InputList> {
  const field = 'inputs';
  const value = members.get(field) ?? null;
  if (value === null) throw invalidField(field, 'is required: a string, token ids, or a list of these');
  if (typeof value === 'string') return { values: [readFilledText(value, field)], field };
  if (!Array.isArray(value)) throw invalidField(field, 'must be a string, token ids, or a list of these');
  const list: readonly unknown[] = isIdList(value) ? [value] : value;
  checkFilledList(list, field, served.limits.batchLimit);
  const values = list.map((element, index) => {
    const name = list === value ? `${field}[${index}]` : field;
    return Array.isArray(element) ? readIds(element, name) : readFilledText(element, name, 'a string or token ids');
  });
  if (values.every((each) => typeof each === 'string')) return { values, field };
  const empty = { texts: [''], hasSpecialTokens: true, field };
  const [specials = []] = await served.tokenize(empty, signal, async (tokens) => tokens);
  const specialIds = new Set(specials.filter(({ isSpecial }) => isSpecial).map(({ id }) => id));
  return { values: values.map((each) => (typeof each === 'string' ? each : within(each, specialIds))), field };
}

/** The ids without those of the set at either end. */
function within(ids: readonly number[], outer: ReadonlySet<number>): readonly number[] {
  const isInner = (id: number) => !outer.has(id);
  return ids.slice(Math.max(0, ids.findIndex(isInner)), ids.findLastIndex(isInner) + 1);
}

/** The side that is cut away, the default first. */
export const truncationDirections = ['Right', 'right', 'Left', 'left'] as const;

/**
 * What becomes of a text that is too long: without a word it is refused.
 * @throws invalidParams, unsupportedOption
 */
export function readTruncation(members: Members, prefix = ''): Truncation {
  const isCut = readOptionalBoolean(members, 'truncate', `${prefix}truncate`) ?? false;
  const field = `${prefix}truncation_direction`;
  const { value } = readOption(members, 'truncation_direction', truncationDirections, { field });
  if (!isCut) return 'refuse';
  return value.toLowerCase() === 'left' ? 'keepEnd' : 'keepStart';
}

/** The model that serves a method where none is named. */
export const firstModelOf = ({ models }: ServedFacts, method: TaskMethod): ModelFacts | undefined =>
  models.find(({ methods }) => methods.includes(method));

/** Names that models give their prompts, by the kind of text that they are for. */
const promptKinds: Readonly<Record<'query' | 'document', RegExp>> = {
  query: /quer(y|ies)/i,
  document: /document|passage|corpus/i,
};

/**
 * The kind of text whose prompt is named; null where none is.
 * @throws invalidParams where the model has no such prompt
 */
export function readPromptKind(
  members: Members,
  model: ModelFacts | undefined,
  prefix = '',
): 'query' | 'document' | null {
  const field = `${prefix}prompt_name`;
  const name = readOptionalString(members, 'prompt_name', field);
  // A method without a model is refused by the task itself.
  if (name === null || model === undefined) return null;
  const { prompts } = model.vectors;
  const available = (['query', 'document'] as const).filter((kind) => prompts[kind] !== '');
  const kind = available.find((each) => promptKinds[each].test(name));
  if (kind !== undefined) return kind;
  const hint = available.length === 0 ? 'it has none' : `it has ${available.join(', ')}`;
  throw invalidField(field, `${model.model} has no prompt of this name; ${hint}`);
}
