/** Owns Cohere's `embed`: from its request to its answer. */
import { randomUUID } from 'node:crypto';
import { Pace, writeVectors, type VectorForm } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import { readOptionalObject } from '../../../rpc/params.ts';
import type { ResultOf } from '../../../rpc/task-request.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { withFieldNamed } from '../field-name.ts';
import { requestedModel } from '../requested-model.ts';
import { writeTextList } from '../write-texts.ts';
import { readEmbedRequest, type CohereVersion, type EmbeddingType, type EmbedRequest } from './embed-request.ts';

const formOf: Readonly<Record<EmbeddingType, VectorForm>> = {
  float: { encoding: 'json', output: null },
  base64: { encoding: 'f32-base64', output: null },
  int8: { encoding: 'json', output: 'int8' },
  uint8: { encoding: 'json', output: 'uint8' },
  binary: { encoding: 'json', output: 'binary' },
  ubinary: { encoding: 'json', output: 'ubinary' },
};

/**
 * The answer of one call.
 * @throws ServiceError
 */
export async function answerEmbed(call: CompatCall, version: CohereVersion): Promise<Answer> {
  const { body, served } = call;
  const members = readOptionalObject(body, 'body');
  const request = readEmbedRequest(members, version);
  const model = requestedModel(members, served, 'embed');
  const { field, kind, truncation, dimensions, maxTokens } = request;
  const inputs = { values: request.texts, field };
  const task = { method: 'embed', inputs, kind, model, truncation, lane: null, dimensions, maxTokens } as const;
  const result = await call.run(task).catch((error: unknown) => {
    throw withFieldNamed(withFieldNamed(error, 'dimensions', 'output_dimension'), 'maxTokens', 'max_tokens');
  });
  return { status: 200, body: await encodeAnswer(request, result, version) };
}

async function encodeAnswer(
  { texts, types }: EmbedRequest,
  { vectors, model, usage }: ResultOf<'embed'>,
  version: CohereVersion,
): Promise<Buffer> {
  const pace = new Pace();
  const writer = new JsonWriter().ascii(`{"id":"${randomUUID()}","texts":`);
  await writeTextList(writer, texts, pace);
  writer.ascii(',"embeddings":');
  if (types === null) await writeVectors(writer, vectors, formOf.float, pace);
  else await writeByType(writer, vectors, types, pace);
  const meta = { api_version: { version }, billed_units: { input_tokens: usage.inputTokens } };
  const kind = types === null ? 'embeddings_floats' : 'embeddings_by_type';
  return writer
    .text(`,"meta":${JSON.stringify(meta)},"response_type":"${kind}","model":${JSON.stringify(model)}}`)
    .finish();
}

async function writeByType(
  writer: JsonWriter,
  vectors: readonly Float32Array[],
  types: readonly EmbeddingType[],
  pace: Pace,
): Promise<void> {
  for (const [index, type] of types.entries()) {
    writer.ascii(`${index === 0 ? '{' : ','}"${type}":`);
    await writeVectors(writer, vectors, formOf[type], pace);
  }
  writer.ascii('}');
}
