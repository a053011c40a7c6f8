/** Owns the OpenAPI document: every operation in its place, those that share one put together. */
import type { CompatFamily } from '../compat/family.ts';
import type { ApiFacts, DescribedAnswer, DescribedBody, Operation } from './api.ts';
import { cohereSchemas } from './cohere.ts';
import { familyOperations } from './families.ts';
import { jinaSchemas } from './jina.ts';
import { openaiSchemas } from './openai.ts';
import { openapiPath, ownOperations, ownSchemas } from './own-routes.ts';
import { rcpCallSchemas, rcpOperations } from './rcp.ts';
import { rcpSchemas } from './rcp-schemas.ts';
import { anyOf, type Schema } from './schema.ts';
import { teiSchemas } from './tei.ts';

export { openapiPath };

/** Name of the way in which a key is sent. */
const keyScheme = 'bearerKey';

/** The document as JSON: made once, because nothing in it changes while the process lives. */
export const openapiBytes = (families: readonly CompatFamily[], facts: ApiFacts): Buffer =>
  Buffer.from(JSON.stringify(openapiDocument(families, facts)));

function openapiDocument(families: readonly CompatFamily[], facts: ApiFacts) {
  const operations = [...rcpOperations(facts), ...ownOperations(facts), ...familyOperations(families, facts)];
  const paths = [...new Set(operations.map(({ path }) => path))].sort();
  return {
    openapi: '3.1.0',
    info: {
      title: facts.served.server.name,
      version: facts.served.server.version,
      summary: 'Dense, sparse and multi-vector embeddings and reranking.',
      description: rulesOf(facts),
    },
    servers: [{ url: '/' }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths: Object.fromEntries(paths.map((path) => [path, pathItem(operations.filter((each) => each.path === path))])),
    components: {
      schemas: {
        ...rcpSchemas,
        ...rcpCallSchemas(facts),
        ...ownSchemas,
        ...openaiSchemas,
        ...cohereSchemas,
        ...jinaSchemas,
        ...teiSchemas,
      },
      securitySchemes: { [keyScheme]: { type: 'http', scheme: 'bearer' } },
    },
  };
}

/** What holds for every route. */
function rulesOf({ hasKey, limits, served }: ApiFacts): string {
  return [
    hasKey ? 'Calls need the key as a bearer.' : 'No key is set.',
    'Members that are not described are ignored; an optional member may be null, which counts as absent.',
    'What answers GET answers HEAD.',
    `A body has at most ${limits.bodyLimitBytes} bytes, a list of inputs ${served.limits.batchLimit} elements,`,
    `a list to be ordered ${served.limits.maxCandidates}. A call takes at most ${served.limits.deadlineMs} ms.`,
  ].join(' ');
}

function pathItem(operations: readonly Operation[]): Readonly<Record<string, unknown>> {
  const methods = [...new Set(operations.map(({ method }) => method))];
  return Object.fromEntries(
    methods.map((method) => [method, operationObject(operations.filter((each) => each.method === method))]),
  );
}

/** Several where services share a path: each is told by the body that it takes. */
function operationObject(operations: readonly Operation[]): Readonly<Record<string, unknown>> {
  const pathName = operations.find((each) => each.pathName !== undefined)?.pathName;
  const bodies = operations.flatMap(({ body }) => body ?? []);
  const [first] = operations;
  return {
    operationId: operationIdOf(first?.method ?? '', first?.path ?? ''),
    tags: [...new Set(operations.map(({ tag }) => tag))],
    summary: operations.map(({ summary }) => summary).join('; '),
    description: operations.map(({ description }) => description).join('\n\n'),
    security: operations.some(({ needsKey }) => needsKey) ? [{ [keyScheme]: [] }] : [],
    ...(pathName !== undefined && {
      parameters: [{ ...pathName, in: 'path', required: true, schema: { type: 'string' } }],
    }),
    ...(bodies.length > 0 && { requestBody: requestBody(bodies) }),
    responses: responses(operations.map(({ answers }) => answers)),
  };
}

/** `POST /v1/embed` is `postV1Embed`. */
function operationIdOf(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const named = words.length === 0 ? ['root'] : words;
  return method + named.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function requestBody(bodies: readonly DescribedBody[]): Readonly<Record<string, unknown>> {
  const examples = Object.assign({}, ...bodies.map((body) => body.examples)) as DescribedBody['examples'];
  return {
    required: true,
    content: { 'application/json': { schema: anyOf(bodies.map(({ schema }) => schema)), examples } },
  };
}

type Answers = Operation['answers'];

function responses(all: readonly Answers[]): Readonly<Record<string, unknown>> {
  const statuses = [...new Set(all.flatMap((answers) => Object.keys(answers)))];
  return Object.fromEntries(
    statuses.map((status) => [status, response(all.flatMap((answers) => answers[status] ?? []))]),
  );
}

function response(answers: readonly DescribedAnswer[]): Readonly<Record<string, unknown>> {
  const descriptions = [...new Set(answers.map(({ description }) => description))];
  const headers = Object.assign({}, ...answers.map((answer) => answer.headers ?? {})) as Readonly<
    Record<string, Schema>
  >;
  const types = [...new Set(answers.flatMap(({ content }) => Object.keys(content ?? {})))];
  const contentOf = (type: string) => {
    const media = answers.flatMap(({ content }) => content?.[type] ?? []);
    const example = media.find((each) => each.example !== undefined)?.example;
    return { schema: anyOf(media.map(({ schema }) => schema)), ...(example !== undefined && { example }) };
  };
  return {
    description: descriptions.join(' '),
    ...(Object.keys(headers).length > 0 && {
      headers: Object.fromEntries(Object.entries(headers).map(([name, schema]) => [name, { schema }])),
    }),
    ...(types.length > 0 && { content: Object.fromEntries(types.map((type) => [type, contentOf(type)])) }),
  };
}
