/** Owns the routes of text-embeddings-inference's clients. */
import { readLenientObject } from '../../rpc/params.ts';
import type { CompatCall, CompatFamily, CompatRoute } from './family.ts';
import type { Answer } from '../answer.ts';
import { answerEmbed, answerEmbedAll, answerEmbedSparse } from './tei/embed.ts';
import { errorAnswer } from './tei/errors.ts';
import { answerInfo } from './tei/info.ts';
import { answerRerank } from './tei/rerank.ts';
import { answerRoot } from './tei/root.ts';
import { answerSimilarity } from './tei/similarity.ts';
import { answerDecode, answerTokenize } from './tei/tokens.ts';

const post = (path: string, answer: (call: CompatCall) => Promise<Answer>): CompatRoute => ({
  method: 'POST',
  path,
  answer,
});

/** The routes of one server with one model, given by the first model of each task; `/health` needs no key and is elsewhere. */
export const teiFamily: CompatFamily = {
  name: 'tei',
  routes: [
    post('/', answerRoot),
    post('/embed', answerEmbed),
    post('/embed_sparse', answerEmbedSparse),
    post('/embed_all', answerEmbedAll),
    { ...post('/rerank', answerRerank), takes: (body) => (readLenientObject(body).get('texts') ?? null) !== null },
    post('/similarity', answerSimilarity),
    post('/tokenize', answerTokenize),
    post('/decode', answerDecode),
    { method: 'GET', path: '/info', answer: answerInfo },
  ],
  errorAnswer,
};
