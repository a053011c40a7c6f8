/** Owns a rerank call of Cohere's and Jina's clients, whose one answer has what both read. */
import { randomUUID } from 'node:crypto';
import { Pace, writeList } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import { readOptionalObject } from '../../../rpc/params.ts';
import { rawElementsOf } from '../../../rpc/raw-tokens.ts';
import type { ResultOf } from '../../../rpc/task-request.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { relevanceOf } from '../relevance.ts';
import { requestedModel } from '../requested-model.ts';
import { writeRaw, writeValue } from '../write-texts.ts';
import { readRerankRequest, type RerankRequest } from './request.ts';

/** What tells the routes apart. */
export interface RerankRoute {
  /** Version of Cohere's API that the answer names. */
  readonly version: '1' | '2';
  /** Whether documents are given back where the caller does not say. */
  readonly returnsDocuments: boolean;
}

/** Documents that Cohere counts as one search. */
const documentsPerSearch = 100;

/**
 * The answer of one call.
 * @throws ServiceError
 */
export async function answerRerank(call: CompatCall, route: RerankRoute): Promise<Answer> {
  const { body, served } = call;
  const members = readOptionalObject(body, 'body');
  const request = readRerankRequest(members, served.limits.maxCandidates);
  const model = requestedModel(members, served, 'rerank');
  const { query, truncation, maxTokens: maxPassageTokens } = request;
  const passages = { values: request.texts, field: 'documents' };
  const task = { method: 'rerank', query, passages, model, rerankMethod: null, maxPassageTokens } as const;
  const result = await call.run({ ...task, truncation, lane: null });
  const hasDocuments = request.returnsDocuments ?? route.returnsDocuments;
  const documents = hasDocuments ? sentDocuments(request, call.bodyText) : null;
  return { status: 200, body: await encodeAnswer(request, result, documents, route.version) };
}

/** Writes the document at a place; gives how many numbers it counts as. */
type WriteDocument = (writer: JsonWriter, index: number) => number;

/**
 * Both services give a text back as an object, and an object as it was: with every digit of its numbers, of which those
 * that were parsed may have lost some.
 */
function sentDocuments({ documents }: RerankRequest, bodyText: string): WriteDocument {
  const hasObjects = documents.some((document) => typeof document !== 'string');
  const raw = hasObjects ? rawElementsOf(bodyText, 'documents') : [];
  return (writer, index) => {
    const document = documents[index];
    return typeof document === 'string' ? writeValue(writer, { text: document }) : writeRaw(writer, raw[index] ?? '{}');
  };
}

async function encodeAnswer(
  { documents, topN }: RerankRequest,
  result: ResultOf<'rerank'>,
  writeDocument: WriteDocument | null,
  version: RerankRoute['version'],
): Promise<Buffer> {
  const { order, usage } = result;
  const writer = new JsonWriter().text(
    `{"id":"${randomUUID()}","model":${JSON.stringify(result.model)},"object":"list"`,
  );
  writer.ascii(',"results":');
  await writeList(writer, order.slice(0, topN ?? order.length), new Pace(), (index) => {
    writer.ascii(`{"index":${index},"relevance_score":${relevanceOf(result, index)}`);
    const written = writeDocument === null ? 0 : writeDocument(writer.ascii(',"document":'), index);
    writer.ascii('}');
    return written + 2;
  });
  const searches = Math.ceil(documents.length / documentsPerSearch);
  const meta = { api_version: { version }, billed_units: { search_units: searches } };
  const tokens = { total_tokens: usage.inputTokens, prompt_tokens: usage.inputTokens };
  return writer.text(`,"usage":${JSON.stringify(tokens)},"meta":${JSON.stringify(meta)}}`).finish();
}
