/** Owns reading a request of Cohere's `embed`, both versions. */
import { invalidField } from '../../../errors.ts';
import {
  oneOf,
  readOption,
  readOptionalCount,
  readOptionalObject,
  readOptionalString,
  readText,
  readTexts,
  type Members,
} from '../../../rpc/params.ts';
import type { Truncation } from '../../../rpc/task-request.ts';

/** Version of Cohere's API that a route speaks. */
export type CohereVersion = '1' | '2';

/** Forms of the vectors. */
export const embeddingTypes = ['float', 'int8', 'uint8', 'binary', 'ubinary', 'base64'] as const;

/** One of `embeddingTypes`. */
export type EmbeddingType = (typeof embeddingTypes)[number];

/** What texts can be. */
export const inputTypes = ['search_document', 'search_query', 'classification', 'clustering'] as const;
/** Where a text that is too long is cut. */
export const truncations = ['END', 'START', 'NONE'] as const;

/** What is to be embedded, and how the answer looks. */
export interface EmbedRequest {
  readonly texts: readonly string[];
  /** Member that held the texts. */
  readonly field: 'texts' | 'inputs';
  readonly kind: 'query' | 'document' | null;
  readonly truncation: Truncation;
  readonly maxTokens: number | null;
  readonly dimensions: number | null;
  /** null: the answer is a plain list of vectors. */
  readonly types: readonly EmbeddingType[] | null;
}

/**
 * Reads the body; `output_dimension`, `max_tokens` and `inputs` are of version 2.
 * @throws invalidParams, unsupportedOption
 */
export function readEmbedRequest(members: Members, version: CohereVersion): EmbedRequest {
  const isSecond = version === '2';
  return {
    ...readInputs(members, isSecond),
    kind: readInputKind(members, isSecond),
    truncation: readTruncation(members),
    maxTokens: isSecond ? readOptionalCount(members, 'max_tokens') : null,
    dimensions: isSecond ? readOptionalCount(members, 'output_dimension') : null,
    types: readTypes(members) ?? (isSecond ? ['float'] : null),
  };
}

const isGiven = (members: Members, name: string) => (members.get(name) ?? null) !== null;

function readInputs(members: Members, hasInputs: boolean): Pick<EmbedRequest, 'texts' | 'field'> {
  if (isGiven(members, 'images')) throw invalidField('images', 'only text is served here: send texts');
  const field = hasInputs && isGiven(members, 'inputs') ? 'inputs' : 'texts';
  if (field === 'inputs' && isGiven(members, 'texts')) throw invalidField('inputs', 'send either texts or inputs');
  const texts = field === 'inputs' ? readContents(members) : readTexts(members, ['texts', 'texts'], 'texts').texts;
  if (texts.length === 0) throw invalidField(field, 'must have at least 1 element, has 0', { received: 0 });
  return { texts, field };
}

/** The text of each input: its blocks, joined by a newline. */
function readContents(members: Members): readonly string[] {
  const inputs = members.get('inputs');
  if (!Array.isArray(inputs)) throw invalidField('inputs', 'must be a list of objects');
  return inputs.map((input: unknown, index) => {
    const field = `inputs[${index}]`;
    const content = readOptionalObject(input, field).get('content');
    if (!Array.isArray(content) || content.length === 0) {
      throw invalidField(`${field}.content`, 'must be a list of at least 1 text block');
    }
    return content.map((block, place) => readText(block, `${field}.content[${place}]`)).join('\n');
  });
}

/** Only search tells queries from documents; the other types are texts as they are. */
function readInputKind(members: Members, isRequired: boolean): EmbedRequest['kind'] {
  if (readOptionalString(members, 'input_type') === null) {
    if (isRequired) throw invalidField('input_type', `is required: one of ${inputTypes.join(', ')}`);
    return null;
  }
  const { value } = readOption(members, 'input_type', inputTypes);
  if (value === 'search_query') return 'query';
  return value === 'search_document' ? 'document' : null;
}

/** Without a word each model cuts where it was made to: its vectors are those of `embed` then. */
function readTruncation(members: Members): Truncation {
  if (!isGiven(members, 'truncate')) return null;
  const { value } = readOption(members, 'truncate', truncations);
  return ({ END: 'keepStart', START: 'keepEnd', NONE: 'refuse' } as const)[value];
}

function readTypes(members: Members): readonly EmbeddingType[] | null {
  const list = members.get('embedding_types') ?? null;
  if (list === null) return null;
  if (!Array.isArray(list)) throw invalidField('embedding_types', 'must be a list of strings');
  const types = list.map((element: unknown, index) => readType(element, `embedding_types[${index}]`));
  return types.length === 0 ? null : [...new Set(types)];
}

function readType(value: unknown, field: string): EmbeddingType {
  if (typeof value !== 'string') throw invalidField(field, 'must be a string');
  return oneOf(value, embeddingTypes, field);
}
