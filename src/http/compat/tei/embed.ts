/** Owns the three routes that turn inputs into vectors: `/embed`, `/embed_sparse` and `/embed_all`. */
import { invalidField } from '../../../errors.ts';
import { Pace, writeList, writeMatrices, writeVectors, type VectorForm } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import { readOptionalBoolean, readOptionalCount, readOptionalObject, type Members } from '../../../rpc/params.ts';
import type { ModelFacts } from '../../../rpc/served-facts.ts';
import type { RequestOf, ResultOf } from '../../../rpc/task-request.ts';
import { cutAndNormalize } from '../../../tensor/slice.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { firstModelOf, readInputs, readPrompt, readTruncation } from './inputs.ts';
import { poolRows } from './pool-rows.ts';

const floats: VectorForm = { encoding: 'json', output: null };

/**
 * `[[number…]…]`: the vectors of `embed`.
 * @throws ServiceError
 */
export async function answerEmbed(call: CompatCall): Promise<Answer> {
  const members = readOptionalObject(call.body, 'body');
  const facts = firstModelOf(call.served, 'embed');
  const normalize = readOptionalBoolean(members, 'normalize');
  const dimensions = readDimensions(members, facts);
  const request = await readVectorRequest(call, members, facts);
  const isHidden = normalize === false && facts?.vectors.isNormalized === true;
  const vectors = isHidden
    ? await unnormalized(call, request, dimensions, facts)
    : (await call.run({ ...request, method: 'embed', dimensions })).vectors;
  // Models that were not made to give unit length give it where it is asked for.
  const isScaled = normalize === true && facts?.vectors.isNormalized === false;
  return vectorsAnswer(isScaled ? vectors.map((vector) => cutAndNormalize(vector, vector.length)) : vectors);
}

/**
 * `[[{index, value}…]…]`: the terms of `embed/sparse`.
 * @throws ServiceError
 */
export async function answerEmbedSparse(call: CompatCall): Promise<Answer> {
  const members = readOptionalObject(call.body, 'body');
  const request = await readVectorRequest(call, members, firstModelOf(call.served, 'embed/sparse'));
  const { sparse } = await call.run({ ...request, method: 'embed/sparse' });
  const writer = new JsonWriter();
  await writeList(writer, sparse, new Pace(), (vector) => writeTerms(writer, vector));
  return { status: 200, body: writer.finish() };
}

/**
 * `[[[number…]…]…]`: the encoder's row of each token.
 * @throws ServiceError
 */
export async function answerEmbedAll(call: CompatCall): Promise<Answer> {
  const members = readOptionalObject(call.body, 'body');
  const request = await readVectorRequest(call, members, firstModelOf(call.served, 'embed'));
  const { matrices } = await call.run({ ...request, method: 'hidden' });
  const writer = new JsonWriter();
  await writeMatrices(writer, matrices, floats, new Pace());
  return { status: 200, body: writer.finish() };
}

type VectorRequest = Omit<RequestOf<'hidden'>, 'method'>;

async function readVectorRequest(
  call: CompatCall,
  members: Members,
  facts: ModelFacts | undefined,
): Promise<VectorRequest> {
  const truncation = readTruncation(members);
  const prompt = readPrompt(members, facts);
  return { inputs: await readInputs(members, call, facts), ...prompt, truncation, model: null, lane: null };
}

/** Too many are no matter of size here: no other list would do. */
function readDimensions(members: Members, facts: ModelFacts | undefined): number | null {
  const dimensions = readOptionalCount(members, 'dimensions');
  const dimension = facts?.dimension ?? null;
  if (dimensions === null || dimension === null || dimensions <= dimension) return dimensions;
  throw invalidField('dimensions', `is ${dimensions}, the model has ${dimension}`);
}

/** Vectors before they get unit length: pooled here, because the model's own graph does both in one. */
async function unnormalized(
  call: CompatCall,
  request: VectorRequest,
  dimensions: number | null,
  { model, vectors: { plainPooling } }: ModelFacts,
): Promise<readonly Float32Array[]> {
  if (plainPooling === null)
    throw invalidField('normalize', `false is not served: vectors of ${model} have unit length`);
  if (dimensions !== null) throw invalidField('normalize', 'false is not served together with dimensions');
  const { matrices } = await call.run({ ...request, method: 'hidden' });
  const pace = new Pace();
  const vectors: Float32Array[] = [];
  for (const matrix of matrices) {
    vectors.push(poolRows(matrix, plainPooling));
    await pace.wrote(matrix.values.length);
  }
  return vectors;
}

async function vectorsAnswer(vectors: readonly Float32Array[]): Promise<Answer> {
  const writer = new JsonWriter();
  await writeVectors(writer, vectors, floats, new Pace());
  return { status: 200, body: writer.finish() };
}

function writeTerms(writer: JsonWriter, { indices, values }: ResultOf<'embed/sparse'>['sparse'][number]): number {
  writer.ascii('[');
  indices.forEach((term, position) => {
    writer.ascii(`${position === 0 ? '' : ','}{"index":${term},"value":`).float32(values[position] ?? 0);
    writer.ascii('}');
  });
  writer.ascii(']');
  return 2 * values.length;
}
