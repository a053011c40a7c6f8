/** Owns the answer to an embeddings request of OpenAI's clients. */
import { Pace, writeList, writeVector } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import type { ResultOf } from '../../../rpc/task-request.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { readEmbeddings, type EmbeddingsRequest, type TokenIdRule } from './request.ts';

/**
 * One embedding for each input, in its order.
 * @throws invalidParams, unsupportedOption, and as the task
 */
export async function answerEmbeddings(call: CompatCall, tokenIds: TokenIdRule): Promise<Answer> {
  const { request, encoding } = readEmbeddings(call.body, call.served, tokenIds);
  return { status: 200, body: await encodeEmbeddings(await call.run<'embed'>(request), encoding) };
}

async function encodeEmbeddings(
  { vectors, model, usage: { inputTokens } }: ResultOf<'embed'>,
  encoding: EmbeddingsRequest['encoding'],
): Promise<Buffer> {
  const writer = new JsonWriter().text('{"object":"list","data":');
  let index = 0;
  await writeList(writer, vectors, new Pace(), (vector) => {
    writer.ascii(`{"object":"embedding","index":${index},"embedding":`);
    index += 1;
    const written = writeVector(writer, vector, { encoding, output: null });
    writer.ascii('}');
    return written;
  });
  // Nothing is made of the tokens but vectors: those of the input are all.
  const usage = { prompt_tokens: inputTokens, total_tokens: inputTokens };
  return writer.text(`,"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`).finish();
}
