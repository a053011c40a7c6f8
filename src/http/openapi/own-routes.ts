/** Owns the description of what is neither RCP nor another service's: health, metrics, the console, the description itself. */
import { emptyAnswer, jsonAnswer, type ApiFacts, type Operation } from './api.ts';
import { challenge, emptyHeadRefusals } from './errors.ts';
import { exactly, full, list, ref, text, type Schema } from './schema.ts';

/** Where the description is. */
export const openapiPath = '/openapi.json';

const tag = 'Server';

/** Schemas of the components. */
export const ownSchemas: Readonly<Record<string, Schema>> = {
  Unavailable: full({ status: exactly('unavailable'), reasons: list(text()) }),
};

/** The operations as configured. */
export function ownOperations(facts: ApiFacts): readonly Operation[] {
  const page: Operation = {
    method: 'get',
    path: '/',
    tag,
    summary: 'The console',
    description: 'A page that shows what this server is and tries what it can do.',
    needsKey: false,
    answers: {
      200: { description: 'The page.', content: { 'text/html; charset=utf-8': { schema: text() } } },
      304: emptyAnswer('The caller has this very page (`If-None-Match`).'),
      ...emptyHeadRefusals([403]),
    },
  };
  const read = (path: string, words: Omit<Operation, 'method' | 'path' | 'tag' | 'needsKey'>, needsKey = false) =>
    ({
      method: 'get',
      path,
      tag,
      needsKey,
      ...words,
      answers: { ...words.answers, ...emptyHeadRefusals([405]) },
    }) as const;
  return [
    ...(facts.hasConsole ? [page] : []),
    read('/health/live', {
      summary: 'Whether the process answers',
      description: 'Never waits for a device.',
      answers: { 200: jsonAnswer('It does.', full({ status: exactly('live') })) },
    }),
    read('/health/ready', {
      summary: 'Whether everything that is offered can run',
      description: 'Every capability has a device that has proved it.',
      answers: {
        200: jsonAnswer('It can.', full({ status: exactly('ready') })),
        503: jsonAnswer('It cannot, and why.', ref('Unavailable')),
      },
    }),
    read('/health', {
      summary: 'The same in the words of text-embeddings-inference',
      description: 'Nothing but a status where all is well.',
      answers: { 200: emptyAnswer('It can.'), 503: jsonAnswer('It cannot.', ref('TeiError')) },
    }),
    read(
      '/metrics',
      {
        summary: 'Metrics for Prometheus',
        description: 'The text format 0.0.4.',
        answers: {
          200: {
            description: 'All metrics.',
            content: { 'text/plain; version=0.0.4; charset=utf-8': { schema: text() } },
          },
          401: {
            description: 'The bearer key is missing or wrong.',
            headers: challenge,
            content: { 'application/json': { schema: ref('RcpError') } },
          },
          ...emptyHeadRefusals([403]),
        },
      },
      facts.hasKey && !facts.isMetricsOpen,
    ),
    read(openapiPath, {
      summary: 'This description',
      description: 'Needs no key: it says how to talk to the server, and nothing of what anyone says to it.',
      answers: {
        200: jsonAnswer('An OpenAPI 3.1 document.', { type: 'object', additionalProperties: true }),
        ...emptyHeadRefusals([403]),
      },
    }),
  ];
}
