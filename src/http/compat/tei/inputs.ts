/** Owns reading what the routes of text-embeddings-inference have in common: inputs, truncation, prompt. */
import { invalidField, type ServiceError } from '../../../errors.ts';
import type { TaskMethod } from '../../../rpc/methods.ts';
import { checkCount, readOption, readOptionalBoolean, readOptionalString, type Members } from '../../../rpc/params.ts';
import type { ModelFacts, ServedFacts } from '../../../rpc/served-facts.ts';
import type { InputList, RequestOf, Truncation } from '../../../rpc/task-request.ts';
import type { CompatCall } from '../family.ts';

/** Ids of that service are unsigned 32-bit integers. */
export const maxId = 0xffff_ffff;

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
 * `inputs`: a text, the ids of one, or a list in which each is one of these. Ids are those that `/tokenize` gives for
 * the model that runs: the special tokens around a text are taken away, because every input gets its own.
 * @throws invalidParams; the signal's reason
 */
export async function readInputs(
  members: Members,
  { served, signal }: Pick<CompatCall, 'served' | 'signal'>,
  model: ModelFacts | undefined,
): Promise<InputList> {
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
  // A method without a model is refused by the task itself.
  if (model === undefined || values.every((each) => typeof each === 'string')) return { values, field };
  const around = await specialIdsOf(model, served, signal);
  return { values: values.map((each) => (typeof each === 'string' ? each : within(each, around))), field };
}

/** Ids that a model puts around a text. */
interface SpecialIds {
  readonly before: readonly number[];
  readonly behind: readonly number[];
}

/** Texts of which every vocabulary has tokens for one, to tell what stands before a text from what stands behind it. */
const probes = ['a', '0'];

async function specialIdsOf({ model }: ModelFacts, served: ServedFacts, signal: AbortSignal): Promise<SpecialIds> {
  const asked = { texts: probes, hasSpecialTokens: true, field: 'inputs', model };
  return served.tokenize(asked, signal, async (lists) => {
    const tokens = lists.find((list) => list.some(({ isSpecial }) => !isSpecial)) ?? [];
    const idsOf = (part: typeof tokens) => part.map(({ id }) => id);
    const first = tokens.findIndex(({ isSpecial }) => !isSpecial);
    const last = tokens.findLastIndex(({ isSpecial }) => !isSpecial);
    return { before: idsOf(tokens.slice(0, Math.max(0, first))), behind: idsOf(tokens.slice(last + 1)) };
  });
}

/** What stands between the special ids; all where they are not there, whatever else is at the ends. */
function within(ids: readonly number[], { before, behind }: SpecialIds): readonly number[] {
  const end = ids.length - behind.length;
  const isBetween =
    end >= before.length &&
    before.every((id, index) => ids[index] === id) &&
    behind.every((id, index) => ids[end + index] === id);
  return isBetween ? ids.slice(before.length, end) : ids;
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

/** What goes before each text. */
export type ChosenPrompt = Pick<RequestOf<'embed'>, 'kind' | 'prompt'>;

/** Most names that an error lists. */
const maxListedNames = 64;

/**
 * The prompt of the name, exactly: by the kind of text where that is its name, else itself. Without a name, the one that
 * the model has for texts of no kind.
 * @throws invalidParams that lists the names, where the model has none of this name
 */
export function readPrompt(members: Members, model: ModelFacts | undefined, prefix = ''): ChosenPrompt {
  const field = `${prefix}prompt_name`;
  const name = readOptionalString(members, 'prompt_name', field);
  if (name === null || model === undefined) return { kind: null };
  const { namedPrompts } = model.vectors;
  if (!Object.hasOwn(namedPrompts, name)) throw unknownPrompt(field, model);
  if (name === 'query' || name === 'document') return { kind: name };
  return { kind: null, prompt: namedPrompts[name] ?? '' };
}

function unknownPrompt(field: string, { model, vectors: { namedPrompts } }: ModelFacts): ServiceError {
  const names = Object.keys(namedPrompts);
  const more = names.length > maxListedNames ? `, and ${names.length - maxListedNames} more` : '';
  const hint = names.length === 0 ? 'it has none' : `it has ${names.slice(0, maxListedNames).join(', ')}${more}`;
  return invalidField(field, `${model} has no prompt of this name; ${hint}`);
}

/** The text of a chosen prompt. */
export const promptTextOf = ({ kind, prompt }: ChosenPrompt, model: ModelFacts | undefined): string =>
  prompt ?? model?.vectors.prompts[kind ?? 'unspecified'] ?? '';
