/** Owns reading a rerank request as Cohere's and Jina's clients send it. */
import { invalidField } from '../../../errors.ts';
import {
  checkCount,
  readLenientObject,
  readOptionalBoolean,
  readOptionalCount,
  readOptionalObject,
  readQuery,
  readText,
  type Members,
} from '../../../rpc/params.ts';
import type { Truncation } from '../../../rpc/task-request.ts';

/** Most members of a document that together are its text. */
export const maxRankFields = 64;

/** What is to be ordered, and how the answer looks. */
export interface RerankRequest {
  readonly query: string;
  /** As they were sent: an answer gives them back. */
  readonly documents: readonly unknown[];
  /** What is read of each document. */
  readonly texts: readonly string[];
  readonly topN: number | null;
  /** null: whatever the service of the caller does without a word. */
  readonly returnsDocuments: boolean | null;
  readonly truncation: Truncation;
  readonly maxTokens: number | null;
}

/**
 * Reads the body; both services know `query`, `documents`, `top_n` and `return_documents`, Cohere also `rank_fields`,
 * `max_tokens_per_doc` and `max_chunks_per_doc`, Jina `truncation` and `max_doc_length`.
 * @throws invalidParams, unsupportedOption
 */
export function readRerankRequest(members: Members, maxDocuments: number): RerankRequest {
  const query = readQuery(members, readQueryText);
  const documents = readDocuments(members, maxDocuments);
  const rankFields = readRankFields(members);
  const texts = documents.map((document, index) => textOf(document, rankFields, `documents[${index}]`));
  // A document is read once, cut where it is too long: there are no chunks to count.
  readOptionalCount(members, 'max_chunks_per_doc');
  const perDocument = readOptionalCount(members, 'max_tokens_per_doc');
  const ofJina = readOptionalCount(members, 'max_doc_length');
  return {
    query,
    documents,
    texts,
    topN: readOptionalCount(members, 'top_n'),
    returnsDocuments: readOptionalBoolean(members, 'return_documents'),
    truncation: readOptionalBoolean(members, 'truncation') === false ? 'refuse' : null,
    maxTokens: perDocument ?? ofJina,
  };
}

/** Jina's clients send a text as `{text}`, which needs no type. */
function readQueryText(value: unknown, field: string): string {
  const members = readLenientObject(value);
  const text = members.get('text');
  const isTyped = (members.get('type') ?? null) !== null;
  return typeof text === 'string' && !isTyped ? text : readText(value, field);
}

function readDocuments(members: Members, limit: number): readonly unknown[] {
  const documents = members.get('documents') ?? null;
  if (documents === null) throw invalidField('documents', 'is required: a list of strings');
  if (!Array.isArray(documents)) throw invalidField('documents', 'must be a list of strings');
  if (documents.length === 0) throw invalidField('documents', 'must have at least 1 element, has 0', { received: 0 });
  checkCount(documents, 'documents', limit);
  return documents;
}

function readRankFields(members: Members): readonly string[] {
  const fields = members.get('rank_fields') ?? null;
  if (fields === null) return ['text'];
  if (!Array.isArray(fields)) throw invalidField('rank_fields', 'must be a list of strings');
  if (fields.length === 0) return ['text'];
  checkCount(fields, 'rank_fields', maxRankFields);
  return fields.map((field: unknown, index) => {
    if (typeof field !== 'string') throw invalidField(`rank_fields[${index}]`, 'must be a string');
    return field;
  });
}

/**
 * The text of a document: itself, or its ranked members in their order, one a line. Errors do not repeat the names in
 * `rank_fields`, which may be anything.
 */
function textOf(document: unknown, rankFields: readonly string[], field: string): string {
  if (typeof document === 'string') return document;
  if (typeof document !== 'object' || document === null || Array.isArray(document)) {
    throw invalidField(field, 'must be a string, or an object with a text');
  }
  const members = readOptionalObject(document, field);
  const texts = rankFields.flatMap((name, place) => {
    const value = members.get(name) ?? null;
    if (value === null) return [];
    if (typeof value === 'string') return [value];
    if (name === 'text') throw invalidField(`${field}.text`, 'must be a string');
    throw invalidField(field, `must have a string as the member that rank_fields[${place}] names`);
  });
  if (texts.length > 0) return texts.join('\n');
  if (rankFields.includes('text')) throw invalidField(`${field}.text`, 'is required: only text is served here');
  throw invalidField(field, 'must have a member that rank_fields names: only text is served here');
}
