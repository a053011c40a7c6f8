import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../../src/errors.ts';
import { createFamilies } from '../../../../src/http/compat/families.ts';
import type { CompatCall } from '../../../../src/http/compat/family.ts';
import { routeFor, routeTable } from '../../../../src/http/compat/route-table.ts';
import type { ApiFacts } from '../../../../src/http/openapi/api.ts';
import { openapiBytes } from '../../../../src/http/openapi/document.ts';
import { checkCount } from '../../../../src/rpc/params.ts';
import type { ModelFacts } from '../../../../src/rpc/served-facts.ts';
import type { TaskRequest } from '../../../../src/rpc/task-request.ts';
import {
  operationsOf,
  requestSchemaOf,
  validatorOf,
  type Json,
  type OpenapiDocument,
} from '../../../support/openapi.ts';

const limits = {
  batchLimit: 3,
  maxCandidates: 4,
  deadlineMs: 1,
  maxBatchTokens: 1,
  maxBatchItems: 1,
  maxQueuedItems: 1,
};
/** Any length, and no unit length: what may be asked of a model's vectors is no matter of the form of a request. */
const model: ModelFacts = {
  model: 'all@1',
  identity: 'all@1',
  revision: null,
  precision: 'fp32',
  methods: ['embed', 'embed/sparse', 'rerank'],
  maxInputTokens: 256,
  dimension: null,
  pooling: 'mean',
  vectors: {
    prompts: { query: '', document: '', unspecified: '' },
    // Which names there are is no matter of the form either.
    namedPrompts: { a: '', 'b c': '', x: '', '': '', search_query: '' },
    isNormalized: false,
    plainPooling: 'mean',
  },
};

const served: ApiFacts['served'] = {
  models: [model],
  modelNames: 'any',
  limits,
  server: { name: 'test', version: '1' },
  tokenize: async ({ texts }, _signal, use) => use(texts.map(() => [])),
  decode: async (ids) => ids.map(() => ''),
};

/** As the task judges the lists that no reader has judged. */
async function run(request: TaskRequest) {
  const { method } = request;
  const { values, field } = method === 'rerank' ? request.passages : request.inputs;
  checkCount(values, field, method === 'rerank' ? limits.maxCandidates : limits.batchLimit);
  const row = { values: Float32Array.of(1), dimension: 1, indices: Int32Array.of(1) };
  const rows = {
    vectors: values.map(() => Float32Array.of(1)),
    sparse: values.map(() => row),
    matrices: values.map(() => row),
  };
  const ranks = { order: values.map((_, index) => index), scores: [], rawScores: [], queryRows: null };
  return { ...rows, ...ranks, method, model: 'all@1', usage: { inputTokens: 1 }, tokenCounts: [] };
}

/** Which members of a document are its text another member says, which a schema cannot tell. */
const isOfDocument = ({ data }: ServiceError, { documents }: { readonly documents?: unknown }): boolean => {
  const place = /^documents\[(\d+)\]/.exec(data.field ?? '')?.[1];
  const document: unknown = place === undefined || !Array.isArray(documents) ? null : documents[Number(place)];
  return typeof document === 'object' && document !== null && !Array.isArray(document);
};

/** Values that a reader may stumble over, wherever they stand. */
const stumblingBlocks = [
  ...[null, true, 0, 1, 1.5, -1, 2 ** 32, 1e30, 'x', '', [], {}],
  ...[['x'], [''], [1], [1.5], [-1], [2 ** 32], [null], [['x']], [[1]], [[1], 'x'], ['x', [1]], [[]], [{}]],
  ...[
    { text: 'x' },
    { text: '' },
    { text: 1 },
    { text: null },
    { type: 'text', text: 'x' },
    { type: 'image', text: 'x' },
  ],
  ...[[{ text: 'x' }], [{ type: 'text', text: 'x' }], [{ content: [] }], [{ content: [{ type: 'text', text: 'x' }] }]],
  ...['search_query', ['float'], ['int8', 'other'], Array(3).fill('x'), Array(4).fill('x'), Array(5).fill('x')],
  ...[Array(4).fill([1]), Array(5).fill(1), { source_sentence: 'x', sentences: ['x'] }],
];

/** Values that a schema allows, more or less: whether one does is for its validator to say. */
function valuesOf(document: OpenapiDocument, schema: Json): fc.Arbitrary<unknown> {
  const of = (each: unknown) => valuesOf(document, each as Json);
  const { $ref, anyOf, const: only, enum: some, type, properties, required, items } = schema;
  if (typeof $ref === 'string') return of(document.components.schemas[$ref.split('/').at(-1) ?? '']);
  if (Array.isArray(anyOf) && properties === undefined) return fc.oneof(...anyOf.map(of));
  if (only !== undefined) return fc.constant(only);
  if (Array.isArray(some)) return fc.constantFrom(...(some as unknown[]));
  if (Array.isArray(type)) return fc.oneof(...type.map((each) => of({ ...schema, type: each as unknown })));
  if (type === 'array') return fc.array(of(items ?? {}), { minLength: Number(schema['minItems'] ?? 0), maxLength: 3 });
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer' || type === 'number') return fc.constantFrom(1, 2, 7);
  if (type === 'string') return fc.constantFrom('a', 'b c');
  if (type === 'object' && properties !== undefined) {
    const members = Object.entries(properties as Json).map(([name, each]) => [name, of(each)] as const);
    return fc.record(Object.fromEntries(members), {
      requiredKeys: (required ?? []) as string[],
      noNullPrototype: true,
    });
  }
  return type === 'null' ? fc.constant(null) : fc.constantFrom({}, { text: 'a' }, { a: 1 });
}

/** The value with something else at one of its places, or with one of its members left out. */
function changed(value: unknown, places: readonly number[], block: unknown, isLeftOut: boolean): unknown {
  const [place = 0, ...rest] = places;
  if (typeof value !== 'object' || value === null || places.length === 0) return block;
  const keys = Object.keys(value);
  const key = keys[place % Math.max(1, keys.length)];
  if (key === undefined) return block;
  if (Array.isArray(value)) {
    return value.map((each: unknown, index) => (String(index) === key ? changed(each, rest, block, isLeftOut) : each));
  }
  const members = Object.entries(value).flatMap(([name, each]) => {
    if (name !== key) return [[name, each] as const];
    return isLeftOut ? [] : [[name, changed(each, rest, block, false)] as const];
  });
  return Object.fromEntries(members);
}

const requestsOf = (document: OpenapiDocument, schema: Json): fc.Arbitrary<unknown> => {
  const good = valuesOf(document, schema);
  const places = fc.array(fc.nat(12), { minLength: 1, maxLength: 4 });
  const bad = fc
    .tuple(good, places, fc.constantFrom(...stumblingBlocks), fc.boolean())
    .map(([value, ...how]) => changed(value, ...how));
  return fc.oneof(good, { arbitrary: bad, weight: 3 });
};

describe.each(['refuse', 'model'] as const)('with token ids of OpenAI as %s', (openaiTokenIds) => {
  const families = createFamilies({ openaiTokenIds });
  const facts: ApiFacts = {
    served,
    rerankMethods: ['cross-encoder'],
    limits: { bodyLimitBytes: 1000, maxBatchMembers: 1 },
    hasKey: false,
    isMetricsOpen: false,
    hasConsole: false,
    openaiTokenIds,
  };
  const document = JSON.parse(openapiBytes(families, facts).toString()) as OpenapiDocument;
  const operations = operationsOf(document).filter(({ method, path }) => method === 'POST' && !path.startsWith('/rcp'));
  const table = routeTable(families);

  /** Why a body is refused; null where it is not. */
  async function refusalOf(path: string, body: unknown): Promise<ServiceError | null> {
    const routes = table.find((entry) => entry.path === path)?.routes.get('POST');
    if (routes === undefined) throw new Error(`nothing answers at ${path}`);
    const signal = new AbortController().signal;
    const incoming = { headers: {} };
    const call = { incoming, body, bodyText: JSON.stringify(body), pathName: null, served, signal, run };
    try {
      await routeFor(routes, body).route.answer(call as unknown as CompatCall);
      return null;
    } catch (error) {
      if (error instanceof ServiceError) return error;
      throw error;
    }
  }

  it.each(operations.map(({ path }) => path))(
    '%s takes exactly the bodies that its description allows',
    async (path) => {
      const schema = operations
        .filter((each) => each.path === path)
        .map(({ operation }) => requestSchemaOf(operation))[0];
      if (schema === undefined) throw new Error(`${path} has no body`);
      const isAllowed = validatorOf(document, schema);
      await fc.assert(
        fc.asyncProperty(requestsOf(document, schema), async (body) => {
          const refusal = await refusalOf(path, body);
          fc.pre(refusal === null || !isOfDocument(refusal, body as object));
          const why = refusal === null ? JSON.stringify(isAllowed.errors) : refusal.message;
          expect({ isAllowed: isAllowed(body), why }).toEqual({ isAllowed: refusal === null, why });
        }),
        { numRuns: 1000 },
      );
    },
  );
});
