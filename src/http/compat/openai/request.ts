/** Owns reading the body of an embeddings request of OpenAI's clients. */
import { invalidField, ServiceError } from '../../../errors.ts';
import { checkCount, readOption, readOptionalCount, readOptionalObject, type Members } from '../../../rpc/params.ts';
import type { ServedFacts } from '../../../rpc/served-facts.ts';
import type { InputList, RequestOf } from '../../../rpc/task-request.ts';
import { requestedModel } from '../requested-model.ts';

/** What becomes of token ids: refused, because clients count in another tokenizer's, or taken as the model's own. */
export type TokenIdRule = 'refuse' | 'model';

/** What is asked for, and how the vectors are written. */
export interface EmbeddingsRequest {
  readonly request: RequestOf<'embed'>;
  readonly encoding: 'json' | 'f32-base64';
}

/** Names of how vectors are written, the default first. */
export const embeddingFormats = ['float', 'base64'] as const;

/**
 * The request of a body.
 * @throws invalidParams, unsupportedOption
 */
export function readEmbeddings(body: unknown, served: ServedFacts, tokenIds: TokenIdRule): EmbeddingsRequest {
  const members = readBody(body);
  const values = readInput(members.get('input'), served.limits.batchLimit, tokenIds);
  const { value: format } = readOption(members, 'encoding_format', embeddingFormats);
  const request = {
    method: 'embed',
    inputs: { values, field: 'input' },
    kind: null,
    model: requestedModel(members, served, 'embed'),
    dimensions: readOptionalCount(members, 'dimensions'),
    truncation: 'refuse',
    lane: null,
  } as const;
  return { request, encoding: format === 'float' ? 'json' : 'f32-base64' };
}

function readBody(body: unknown): Members {
  if (body === null || body === undefined) throw new ServiceError('invalidParams', 'The body must be an object');
  return readOptionalObject(body, 'body');
}

const forms = 'a string, a list of strings, a list of token ids, or a list of such lists';
const isId = (value: unknown): value is number => typeof value === 'number';

function readInput(input: unknown, batchLimit: number, tokenIds: TokenIdRule): InputList['values'] {
  if (input === undefined || input === null) throw invalidField('input', `is required: ${forms}`);
  if (typeof input === 'string') return [readText(input, 'input')];
  if (!Array.isArray(input)) throw invalidField('input', `must be ${forms}`);
  if (input.length === 0) throw invalidField('input', 'must not be empty', { received: 0 });
  const list: readonly unknown[] = input;
  if (isId(list[0])) return [readIds(list, 'input', tokenIds)];
  checkCount(list, 'input', batchLimit);
  const isOfIds = Array.isArray(list[0]);
  return list.map((element, index) => {
    const field = `input[${index}]`;
    return isOfIds ? readIds(element, field, tokenIds) : readText(element, field);
  });
}

function readText(value: unknown, field: string): string {
  if (typeof value !== 'string') throw invalidField(field, `must be a string; input is ${forms}`);
  if (value === '') throw invalidField(field, 'must not be empty', { received: 0 });
  return value;
}

function readIds(value: unknown, field: string, tokenIds: TokenIdRule): readonly number[] {
  if (!Array.isArray(value)) throw invalidField(field, `must be a list of token ids; input is ${forms}`);
  const wrong = value.findIndex((id) => !isId(id) || !Number.isInteger(id) || id < 0);
  if (wrong !== -1) throw invalidField(`${field}[${wrong}]`, 'must be a whole number of at least 0');
  if (value.length === 0) throw invalidField(field, 'must not be empty', { received: 0 });
  if (tokenIds === 'model') return value as readonly number[];
  throw invalidField(
    field,
    'token ids are refused, because they are those of another tokenizer; send texts ' +
      '(LangChain: check_embedding_ctx_length=False), or start the server with --openai-token-ids=model',
  );
}
