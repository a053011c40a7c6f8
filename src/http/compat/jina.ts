/** Owns the rerank routes of Jina's clients, one of which is Cohere's too. */
import type { IncomingMessage } from 'node:http';
import { randomUUID } from 'node:crypto';
import type { CompatFamily } from './family.ts';
import { answerRerank } from './rerank/answer.ts';
import { serviceHeaders, serviceMessage, serviceStatus } from './service-status.ts';

/**
 * `/v1/rerank` is Cohere's first version and Jina's only one. Requests and answers differ in one thing that a client
 * can see: without `return_documents` Cohere leaves the documents out and Jina gives them back. Cohere's own clients
 * name themselves, so they get what they expect; everyone else gets the documents, which a client that reads none
 * ignores. Errors have Jina's `detail` and Cohere's `message`.
 */
export const jinaFamily: CompatFamily = {
  name: 'jina',
  routes: [
    {
      method: 'POST',
      path: '/v1/rerank',
      countsAs: 'rerank',
      answer: (call) => answerRerank(call, { version: '1', returnsDocuments: !isCohereClient(call.incoming) }),
    },
    {
      method: 'POST',
      path: '/rerank',
      countsAs: 'rerank',
      answer: (call) => answerRerank(call, { version: '1', returnsDocuments: true }),
    },
  ],
  errorAnswer(error) {
    const message = serviceMessage(error);
    return {
      status: serviceStatus(error),
      headers: serviceHeaders(error),
      body: JSON.stringify({ id: randomUUID(), detail: message, message }),
    };
  },
};

/** True where one of Cohere's clients says so, in whatever language it is written. */
function isCohereClient({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return [headers['x-fern-sdk-name'], headers['user-agent']].some((name) => /cohere/i.test(String(name)));
}
