/** Owns `POST /` of text-embeddings-inference, which is there whatever the one model of such a server does. */
import { readOptionalObject } from '../../../rpc/params.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { answerEmbed, answerEmbedSparse } from './embed.ts';
import { firstModelOf } from './inputs.ts';
import { answerRerank } from './rerank.ts';
import { answerSimilarity } from './similarity.ts';

/**
 * The answer of the route that the body is made for: `texts` are ranked, a source sentence is compared, anything else
 * is embedded, into sparse vectors where there are only these.
 * @throws ServiceError
 */
export function answerRoot(call: CompatCall): Promise<Answer> {
  const { body, served } = call;
  const members = readOptionalObject(body, 'body');
  if (Array.isArray(members.get('texts'))) return answerRerank(call);
  const inputs = members.get('inputs') ?? null;
  if (typeof inputs === 'object' && !Array.isArray(inputs) && inputs !== null) return answerSimilarity(call);
  const isSparse = firstModelOf(served, 'embed') === undefined && firstModelOf(served, 'embed/sparse') !== undefined;
  return isSparse ? answerEmbedSparse(call) : answerEmbed(call);
}
