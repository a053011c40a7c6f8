/** Owns the routes that Cohere's clients call, and the shape of its errors. */
import { randomUUID } from 'node:crypto';
import { answerEmbed } from './cohere/embed.ts';
import type { CompatFamily } from './family.ts';
import { answerRerank } from './rerank/answer.ts';
import { serviceHeaders, serviceMessage, serviceStatus } from './service-status.ts';

/** `embed` in both versions, and the second `rerank`; the first shares its path with Jina's and is there. */
export const cohereFamily: CompatFamily = {
  name: 'cohere',
  routes: [
    { method: 'POST', path: '/v1/embed', countsAs: 'embed', answer: (call) => answerEmbed(call, '1') },
    { method: 'POST', path: '/v2/embed', countsAs: 'embed', answer: (call) => answerEmbed(call, '2') },
    {
      method: 'POST',
      path: '/v2/rerank',
      countsAs: 'rerank',
      answer: (call) => answerRerank(call, { version: '2', returnsDocuments: false }),
    },
  ],
  errorAnswer: (error) => ({
    status: serviceStatus(error),
    headers: serviceHeaders(error),
    body: JSON.stringify({ id: randomUUID(), message: serviceMessage(error) }),
  }),
};
