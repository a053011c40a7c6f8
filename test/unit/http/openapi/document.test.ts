import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { createFamilies } from '../../../../src/http/compat/families.ts';
import type { ApiFacts } from '../../../../src/http/openapi/api.ts';
import { openapiBytes } from '../../../../src/http/openapi/document.ts';
import type { TaskMethod } from '../../../../src/rpc/methods.ts';
import type { ModelFacts } from '../../../../src/rpc/served-facts.ts';
import {
  examplesOf,
  objectsIn,
  operationsOf,
  requestSchemaOf,
  validatorOf,
  type OpenapiDocument,
} from '../../../support/openapi.ts';

const modelOf = (model: string, methods: readonly TaskMethod[]): ModelFacts => ({
  model,
  identity: model,
  revision: null,
  precision: 'fp32',
  methods,
  maxInputTokens: 256,
  dimension: 4,
  pooling: 'mean',
  vectors: {
    prompts: { query: '', document: '', unspecified: '' },
    namedPrompts: {},
    isNormalized: true,
    plainPooling: 'mean',
  },
});

const facts: ApiFacts = {
  served: {
    models: [
      modelOf('dense', ['embed']),
      modelOf('terms', ['embed/sparse']),
      modelOf('rows', ['embed/multi', 'rerank']),
    ],
    modelNames: 'any',
    limits: {
      batchLimit: 17,
      maxCandidates: 19,
      deadlineMs: 23_000,
      maxBatchTokens: 1,
      maxBatchItems: 1,
      maxQueuedItems: 1,
    },
    server: { name: 'trivec', version: '1.2.3' },
    tokenize: async (_asked, _signal, use) => use([]),
    decode: async () => [],
  },
  rerankMethods: ['colbert'],
  limits: { bodyLimitBytes: 4711, maxBatchMembers: 29 },
  hasKey: false,
  isMetricsOpen: false,
  hasConsole: true,
  openaiTokenIds: 'refuse',
};

function documentOf(changes: Partial<ApiFacts> = {}): OpenapiDocument {
  const all = { ...facts, ...changes };
  const families = createFamilies({ openaiTokenIds: all.openaiTokenIds });
  return JSON.parse(openapiBytes(families, all).toString()) as OpenapiDocument;
}

const configurations: [string, Partial<ApiFacts>][] = [
  ['everything', {}],
  ['a key', { hasKey: true }],
  ['token ids and no console', { openaiTokenIds: 'model', hasConsole: false }],
  ['no model', { served: { ...facts.served, models: [] }, rerankMethods: [] }],
];

/** What OpenAPI 3.1 says of the objects that this document uses, with no member beside those it knows. */
const map = (of: object) => ({ type: 'object', additionalProperties: of });
const strict = (required: string[], properties: object) => ({
  type: 'object',
  required,
  properties,
  additionalProperties: false,
});
const string = { type: 'string', minLength: 1 };
const schema = { type: 'object' };
const media = strict(['schema'], {
  schema,
  example: true,
  examples: map(strict(['summary', 'value'], { summary: string, value: true })),
});
const operation = strict(['operationId', 'tags', 'summary', 'description', 'security', 'responses'], {
  operationId: { type: 'string', pattern: '^[a-z][A-Za-z0-9]*$' },
  tags: { type: 'array', items: string, minItems: 1 },
  summary: string,
  description: string,
  security: { type: 'array', items: map({ type: 'array', maxItems: 0 }) },
  parameters: {
    type: 'array',
    items: strict(['name', 'in', 'required', 'schema'], {
      name: string,
      in: { const: 'path' },
      required: { const: true },
      description: string,
      schema,
    }),
  },
  requestBody: strict(['content'], { required: { type: 'boolean' }, content: map(media) }),
  responses: {
    type: 'object',
    minProperties: 1,
    propertyNames: { pattern: '^[1-5]\\d\\d$' },
    additionalProperties: strict(['description'], {
      description: string,
      headers: map(strict(['schema'], { schema })),
      content: map(media),
    }),
  },
});
const documentSchema = strict(['openapi', 'info', 'servers', 'tags', 'paths', 'components'], {
  openapi: { const: '3.1.0' },
  info: strict(['title', 'version'], { title: string, version: string, summary: string, description: string }),
  servers: { type: 'array', items: strict(['url'], { url: string }) },
  tags: { type: 'array', items: strict(['name'], { name: string }) },
  paths: {
    type: 'object',
    propertyNames: { pattern: '^/' },
    additionalProperties: strict([], { get: operation, post: operation }),
  },
  components: strict(['schemas', 'securitySchemes'], {
    schemas: { type: 'object', propertyNames: { pattern: '^[A-Za-z0-9._-]+$' }, additionalProperties: schema },
    securitySchemes: map(strict(['type', 'scheme'], { type: { const: 'http' }, scheme: { const: 'bearer' } })),
  }),
});
const isDocument = new Ajv2020({ allErrors: true }).compile(documentSchema);

describe.each(configurations)('the description with %s', (_, changes) => {
  const document = documentOf(changes);
  const operations = operationsOf(document);

  it('has the form of OpenAPI 3.1', () => {
    expect(isDocument(document), JSON.stringify(isDocument.errors)).toBe(true);
  });

  it('refers to schemas that exist, and has none that nothing refers to', () => {
    const refs = [...objectsIn(document)].flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : []));
    const names = new Set(refs.map((each) => each.replace('#/components/schemas/', '')));
    const known = Object.keys(document.components.schemas);
    expect([...names].filter((name) => !known.includes(name))).toEqual([]);
    if (changes.served === undefined) expect(known.filter((name) => !names.has(name))).toEqual([]);
  });

  it('names each operation, tag, name in a path and key scheme once and as declared', () => {
    const ids = operations.map((each) => each.operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const tags = document.tags.map(({ name }) => name);
    for (const { path, operation: each } of operations) {
      for (const tag of each.tags) expect(tags).toContain(tag);
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect((each.parameters ?? []).map(({ name }) => name)).toEqual(named);
      for (const scheme of each.security.flatMap(Object.keys)) {
        expect(Object.keys(document.components.securitySchemes)).toContain(scheme);
      }
    }
  });

  it('has only schemas that a strict reader takes, and examples that they allow', () => {
    for (const each of Object.values(document.components.schemas)) validatorOf(document, each);
    const problems: string[] = [];
    for (const { path, operation: each } of operations) {
      const request = requestSchemaOf(each);
      const check = request === undefined ? null : validatorOf(document, request);
      for (const value of examplesOf(each)) if (check?.(value) !== true) problems.push(`${path}: a request`);
      for (const [status, { content = {}, headers = {} }] of Object.entries(each.responses)) {
        for (const header of Object.values(headers)) validatorOf(document, header.schema);
        for (const { schema: answer, example } of Object.values(content)) {
          const isAllowed = validatorOf(document, answer, true);
          if (example !== undefined && !isAllowed(example)) problems.push(`${path} ${status}`);
        }
      }
    }
    expect(problems).toEqual([]);
  });
});

describe('what is configured stands in the description', () => {
  const postOf = (document: OpenapiDocument, path: string) => document.paths[path]?.['post'];
  const requestOf = (document: OpenapiDocument, path: string) =>
    JSON.stringify(postOf(document, path)?.requestBody?.content);

  it('the version and the limits', () => {
    const document = documentOf();
    expect(document.info).toMatchObject({ title: 'trivec', version: '1.2.3' });
    for (const limit of ['4711', '17', '19', '23000']) expect(document.info.description).toContain(limit);
    expect(requestOf(document, '/v1/embeddings')).toContain('"maxItems":17');
    expect(requestOf(document, '/v2/rerank')).toContain('"maxItems":19');
    expect(requestOf(document, '/rcp/batch')).toContain('At most 29 frames');
  });

  it('a key is asked for where one is set, except where none is needed', () => {
    const isGuarded = ({ operation: { security } }: ReturnType<typeof operationsOf>[number]) => security.length > 0;
    expect(operationsOf(documentOf()).filter(isGuarded)).toEqual([]);
    const open = (changes: Partial<ApiFacts>) =>
      operationsOf(documentOf({ hasKey: true, ...changes }))
        .filter((each) => !isGuarded(each))
        .map(({ method, path }) => `${method} ${path}`)
        .sort();
    const always = ['/', '/health', '/health/live', '/health/ready', '/openapi.json'].map((path) => `GET ${path}`);
    expect(open({})).toEqual(always);
    expect(open({ isMetricsOpen: true })).toEqual([...always, 'GET /metrics'].sort());
  });

  it('methods of RCP without a model are left out, other routes say that they are not served', () => {
    const models = facts.served.models.filter(({ model }) => model !== 'terms');
    const document = documentOf({ served: { ...facts.served, models } });
    expect(postOf(document, '/rcp/embed')).toBeDefined();
    expect(postOf(document, '/rcp/embed/sparse')).toBeUndefined();
    expect(postOf(document, '/embed_sparse')?.description).toContain('no model');
    expect(postOf(document, '/embed')?.description).not.toContain('no model');
  });

  it('token ids are described only where they are taken', () => {
    expect(requestOf(documentOf(), '/v1/embeddings')).not.toContain('Ids');
    expect(requestOf(documentOf({ openaiTokenIds: 'model' }), '/v1/embeddings')).toContain('Ids');
  });

  it('the console is described only where it is served', () => {
    expect(documentOf().paths['/']?.['get']).toBeDefined();
    expect(documentOf({ hasConsole: false }).paths['/']?.['get']).toBeUndefined();
  });

  it('the same configuration gives the same bytes', () => {
    expect(documentOf()).toEqual(documentOf());
  });
});
