/** Owns the routes of text-embeddings-inference's clients. */
import { readLenientObject } from '../../rpc/params.ts';
import type { CompatCall, CompatFamily, CompatRoute, CountedMethod } from './family.ts';
import type { Answer } from '../answer.ts';
import { answerEmbed, answerEmbedAll, answerEmbedSparse } from './tei/embed.ts';
import { errorAnswer } from './tei/errors.ts';
import { answerInfo } from './tei/info.ts';
import { answerRerank } from './tei/rerank.ts';
import { answerRoot } from './tei/root.ts';
import { answerSimilarity } from './tei/similarity.ts';
import { answerDecode, answerTokenize } from './tei/tokens.ts';

const post = (path: string, countsAs: CountedMethod, answer: (call: CompatCall) => Promise<Answer>): CompatRoute => ({
  method: 'POST',
  path,
  countsAs,
  answer,
});

/** The routes of one server with one model, given by the first model of each task; `/health` needs no key and is elsewhere. */
export const teiFamily: CompatFamily = {
  name: 'tei',
  routes: [
    post('/', 'embed', answerRoot),
    post('/embed', 'embed', answerEmbed),
    post('/embed_sparse', 'embed/sparse', answerEmbedSparse),
    post('/embed_all', 'embed', answerEmbedAll),
    {
      ...post('/rerank', 'rerank', answerRerank),
      takes: (body) => (readLenientObject(body).get('texts') ?? null) !== null,
    },
    post('/similarity', 'embed', answerSimilarity),
    post('/tokenize', 'tokenize', answerTokenize),
    post('/decode', 'decode', answerDecode),
    { method: 'GET', path: '/info', answer: answerInfo },
  ],
  errorAnswer,
};
