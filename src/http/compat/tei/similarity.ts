/** Owns `/similarity` of text-embeddings-inference. */
import { invalidField } from '../../../errors.ts';
import { Pace, writeList } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import { readOptionalObject } from '../../../rpc/params.ts';
import type { RequestOf } from '../../../rpc/task-request.ts';
import { cosine } from '../../../tensor/cosine.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { withFieldNamed } from '../field-name.ts';
import { checkFilledList, emptyField, firstModelOf, readFilledText, readPrompt, readTruncation } from './inputs.ts';

const listField = 'inputs.sentences';
const sourceField = 'inputs.source_sentence';

/**
 * `[number…]`: the cosine of each sentence with the source sentence.
 * @throws ServiceError
 */
export async function answerSimilarity(call: CompatCall): Promise<Answer> {
  const { served } = call;
  const members = readOptionalObject(call.body, 'body');
  const inputs = readOptionalObject(members.get('inputs'), 'inputs');
  const source = readFilledText(inputs.get('source_sentence'), sourceField);
  const sentences = readSentences(inputs.get('sentences'));
  const parameters = readOptionalObject(members.get('parameters'), 'parameters');
  const truncation = readTruncation(parameters, 'parameters.');
  const prompt = readPrompt(parameters, firstModelOf(served, 'embed'), 'parameters.');
  if (sentences.length === 0) throw emptyField(listField);
  // The source is embedded with them.
  checkFilledList([...sentences, source], listField, served.limits.batchLimit);
  const vectors = await embedTexts(call, sentences, source, { ...prompt, truncation });
  const last = vectors.at(-1) ?? new Float32Array();
  const writer = new JsonWriter();
  await writeList(writer, vectors.slice(0, -1), new Pace(), (vector) => {
    writer.float32(Math.fround(cosine(last, vector)));
    return vector.length;
  });
  return { status: 200, body: writer.finish() };
}

function readSentences(list: unknown): readonly string[] {
  if (!Array.isArray(list)) throw invalidField(listField, 'must be a list of strings');
  return list.map((text: unknown, index) => readFilledText(text, `${listField}[${index}]`));
}

/** Vectors of the sentences and then the source; errors name each as the caller does. */
async function embedTexts(
  call: CompatCall,
  sentences: readonly string[],
  source: string,
  options: Pick<RequestOf<'embed'>, 'kind' | 'prompt' | 'truncation'>,
): Promise<readonly Float32Array[]> {
  const inputs = { values: [...sentences, source], field: listField };
  try {
    const common = { model: null, lane: null, dimensions: null };
    return (await call.run({ ...options, ...common, method: 'embed', inputs })).vectors;
  } catch (error) {
    throw withFieldNamed(error, `${listField}[${sentences.length}]`, sourceField);
  }
}
