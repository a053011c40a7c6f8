/** Owns reading an OpenAPI document as a client would: its operations, and checks of values by its schemas. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

/** JSON of any kind with members. */
export type Json = Readonly<Record<string, unknown>>;

/** One answer as described. */
export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly schema: Json }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Json; readonly example?: unknown }>>;
}

/** One operation as described. */
export interface OperationObject {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Json[];
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: {
    readonly content: Readonly<
      Record<
        string,
        { readonly schema: Json; readonly examples: Readonly<Record<string, { readonly value: unknown }>> }
      >
    >;
  };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

/** The document, as far as the tests read it. */
export interface OpenapiDocument extends Json {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Json>>; readonly securitySchemes: Json };
}

/** An operation with where it is. */
export interface PlacedOperation {
  readonly path: string;
  /** As sent. */
  readonly method: 'GET' | 'POST';
  readonly operation: OperationObject;
}

/** All operations of a document. */
export const operationsOf = ({ paths }: OpenapiDocument): PlacedOperation[] =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      path,
      method: method === 'get' ? 'GET' : 'POST',
      operation,
    })),
  );

/** The values of an operation's examples. */
export const examplesOf = ({ requestBody }: OperationObject): unknown[] =>
  Object.values(requestBody?.content['application/json']?.examples ?? {}).map(({ value }) => value);

/** The schema of what is sent. */
export const requestSchemaOf = ({ requestBody }: OperationObject): Json | undefined =>
  requestBody?.content['application/json']?.schema;

/** Every object of a JSON value, the outermost first. */
export function* objectsIn(value: unknown): Generator<Json> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield value as Json;
  for (const each of Object.values(value)) yield* objectsIn(each);
}

/** No object may have a member that is not described: what is answered and not described is found. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, each]) => [name, closed(each)]));
  const isOpen = !('properties' in copy) || 'additionalProperties' in copy || typeof copy['type'] !== 'string';
  return isOpen ? copy : { ...copy, additionalProperties: false };
}

/** The components of a document under an id, so that they are compiled once for all that refers to them. */
const componentsId = 'document:components';

interface Checks {
  readonly ajv: Ajv2020;
  readonly known: Map<string, ValidateFunction>;
}

const checksOf = new WeakMap<OpenapiDocument, Map<boolean, Checks>>();

const withIds = (schema: unknown): Json =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', `"${componentsId}#/$defs/`)) as Json;

function openChecks(document: OpenapiDocument, isClosed: boolean): Checks {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, allErrors: true });
  const { schemas } = document.components;
  ajv.addSchema(withIds({ $id: componentsId, $defs: isClosed ? closed(schemas) : schemas }));
  return { ajv, known: new Map() };
}

/**
 * Checks of values by a schema of the document, in ajv's strict mode; closed ones refuse members that nobody described.
 * @throws Error where the schema is none
 */
export function validatorOf(document: OpenapiDocument, schema: Json, isClosed = false): ValidateFunction {
  const ofDocument = checksOf.get(document) ?? new Map<boolean, Checks>();
  checksOf.set(document, ofDocument);
  const checks = ofDocument.get(isClosed) ?? openChecks(document, isClosed);
  ofDocument.set(isClosed, checks);
  const key = JSON.stringify(schema);
  const check = checks.known.get(key) ?? checks.ajv.compile(withIds(isClosed ? closed(schema) : schema));
  checks.known.set(key, check);
  return check;
}

/** What is wrong with an answer by the operation's description; nothing where all is well. */
export function answerProblems(
  document: OpenapiDocument,
  { operation }: PlacedOperation,
  answer: { readonly status: number; readonly headers: Headers; readonly text: string },
): string[] {
  const described = operation.responses[String(answer.status)];
  if (described === undefined) return [`status ${answer.status} is not described`];
  const missing = Object.keys(described.headers ?? {})
    .filter((name) => answer.status !== 200 && !answer.headers.has(name))
    .map((name) => `the header ${name} is missing`);
  if (described.content === undefined) return answer.text === '' ? missing : [...missing, 'a body is not described'];
  const type = answer.headers.get('content-type') ?? '';
  const media = described.content[type];
  if (media === undefined) return [...missing, `${type === '' ? 'no content' : type} is not described`];
  if (type !== 'application/json') return missing;
  const check = validatorOf(document, media.schema, true);
  const isValid = check(JSON.parse(answer.text));
  return isValid ? missing : [...missing, JSON.stringify(check.errors).slice(0, 2000)];
}

/** Paths of the members that a schema knows, such as `inputs[].text`; `*` for any. */
export function memberPaths(document: OpenapiDocument, schema: Json, path = ''): string[] {
  const { $ref, properties, items, type } = schema;
  if (typeof $ref === 'string') {
    const target = document.components.schemas[$ref.replace('#/components/schemas/', '')];
    return target === undefined ? [] : memberPaths(document, target, path);
  }
  const choices = [schema['anyOf'], schema['oneOf']].flatMap((each) => (each ?? []) as Json[]);
  const named = Object.entries((properties ?? {}) as Record<string, Json>).flatMap(([name, member]) => {
    const full = path === '' ? name : `${path}.${name}`;
    return [full, ...memberPaths(document, member, full)];
  });
  const isAnything =
    properties === undefined && (type === 'object' || (Array.isArray(type) && type.includes('object')));
  return [
    ...named,
    ...choices.flatMap((choice) => memberPaths(document, choice, path)),
    ...(typeof items === 'object' && items !== null ? memberPaths(document, items as Json, `${path}[]`) : []),
    ...(isAnything ? [`${path}.*`] : []),
  ];
}
