/** Owns `/rerank` of text-embeddings-inference. */
import { invalidField } from '../../../errors.ts';
import { Pace, writeList } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import { readOptionalBoolean, readOptionalObject, type Members } from '../../../rpc/params.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { relevanceOf } from '../relevance.ts';
import { writeValue } from '../write-texts.ts';
import { checkFilledList, emptyField, readTruncation } from './inputs.ts';

/**
 * `[{index, text?, score}…]`, best first. Scores are the sigmoid of a cross-encoder's logit; of a late interaction the
 * sum of the likenesses divided by the query's rows. `raw_scores` gives the logit, or the sum.
 * @throws ServiceError
 */
export async function answerRerank(call: CompatCall): Promise<Answer> {
  const members = readOptionalObject(call.body, 'body');
  const query = readQuery(members);
  const texts = readTexts(members);
  const isRaw = readOptionalBoolean(members, 'raw_scores') ?? false;
  const hasTexts = readOptionalBoolean(members, 'return_text') ?? false;
  const truncation = readTruncation(members);
  checkFilledList(texts, 'texts', call.served.limits.maxCandidates);
  const emptyIndex = query === '' ? texts.indexOf('') : -1;
  if (emptyIndex !== -1) throw emptyField(`texts[${emptyIndex}]`);
  const passages = { values: texts, field: 'texts' };
  const task = { method: 'rerank', query, passages, model: null, rerankMethod: null, truncation, lane: null } as const;
  const result = await call.run(task);
  const { order, rawScores } = result;
  const scoreOf = (index: number) => (isRaw ? (rawScores[index] ?? 0) : relevanceOf(result, index));
  const writer = new JsonWriter();
  await writeList(writer, order, new Pace(), (index) => {
    writer.ascii(`{"index":${index}`);
    const written = hasTexts ? writeValue(writer.ascii(',"text":'), texts[index]) : 0;
    writer.ascii(`,"score":${scoreOf(index)}}`);
    return written + 2;
  });
  return { status: 200, body: writer.finish() };
}

function readQuery(members: Members): string {
  const query = members.get('query');
  if (typeof query !== 'string') throw invalidField('query', 'must be a string');
  return query;
}

function readTexts(members: Members): readonly string[] {
  const list = members.get('texts') ?? null;
  if (!Array.isArray(list)) throw invalidField('texts', 'must be a list of strings');
  return list.map((text: unknown, index) => {
    if (typeof text !== 'string') throw invalidField(`texts[${index}]`, 'must be a string');
    return text;
  });
}
