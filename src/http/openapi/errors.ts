/** Owns the error answers of the description: those of other services' routes are asked of the families themselves. */
import { errorCatalogue, ServiceError, type ErrorName } from '../../errors.ts';
import type { CompatFamily } from '../compat/family.ts';
import { unknownModel } from '../../rpc/choose-model.ts';
import type { DescribedAnswer } from './api.ts';
import { text, whole, type Schema } from './schema.ts';

/** Headers that answers of several routes have. */
const headerSchemas: Readonly<Record<string, Schema>> = {
  'Retry-After': whole('Whole seconds after which the same call may succeed.', { minimum: 1 }),
  'WWW-Authenticate': text('The kind of key that is asked for.', { const: 'Bearer' }),
};

/** When to come back. */
export const retryAfter: Readonly<Record<string, Schema>> = pick('Retry-After');

/** What a refused caller is told beside the body. */
export const challenge: Readonly<Record<string, Schema>> = pick('WWW-Authenticate');

function pick(name: string): Readonly<Record<string, Schema>> {
  const schema = headerSchemas[name];
  return schema === undefined ? {} : { [name]: schema };
}

/** Refusals of a request's head, whose statuses are the same everywhere. */
const headRefusals: Readonly<Record<string, string>> = {
  403: '`Host` names another server, or a page of this origin may not call.',
  405: 'The path does not answer this method; `Allow` names those that it does.',
  408: 'The body took too long to arrive.',
  415: 'The body is packed (`Content-Encoding`).',
};

/** The refusals of a head, for routes that answer them without a body. */
export const emptyHeadRefusals = (statuses: readonly number[]): Readonly<Record<string, DescribedAnswer>> =>
  Object.fromEntries(statuses.map((status) => [String(status), { description: headRefusals[status] ?? '' }]));

interface Sample {
  readonly error: ServiceError;
  readonly when: string;
}

/** Errors that a call of another service's client can end with. */
const names = [
  'parse',
  'invalidParams',
  'unsupportedOption',
  'unauthorized',
  'capabilityNotAdvertised',
  'tooLarge',
  'overloaded',
  'internal',
  'unavailable',
  'deadlineExceeded',
] as const satisfies readonly ErrorName[];

const samples: readonly Sample[] = [
  ...names.map((name) => ({
    error: new ServiceError(name, errorCatalogue[name].when),
    when: errorCatalogue[name].when,
  })),
  { error: unknownModel('name', ['another'], 'model'), when: 'The model is not served.' },
  ...[
    { when: 'There is nothing in a list or a text.', data: { received: 0 } },
    { when: 'A text has more tokens than the model reads.', data: { tokens: 2, limit: 1 } },
    { when: 'A list has more elements than the limit.', data: { received: 2, limit: 1, field: 'inputs' } },
  ].map(({ when, data }) => ({ error: new ServiceError('invalidParams', when, data), when })),
];

/** Errors that a request without a body cannot end with. */
const ofBodies = new Set<string>(['parse', 'invalidParams', 'unsupportedOption']);

/** What a fault reads like where each has an id of its own. */
const exampleId = '8d9ef1f5-3f5c-4b8e-9a37-0f2f5d0c1b6a';

/** Every error answer of a family's routes, with the body that the family makes of such an error. */
export function familyErrors(
  { errorAnswer }: CompatFamily,
  schema: Schema,
  request: { readonly hasBody: boolean; readonly hasModel: boolean },
): Readonly<Record<string, DescribedAnswer>> {
  const { hasBody, hasModel } = request;
  const isPossible = ({ error: { errorName, data } }: Sample) =>
    (hasBody || !ofBodies.has(errorName) || data.field === 'model') && (hasModel || data.field !== 'model');
  const answers = new Map<string, { readonly whens: string[]; readonly sample: Sample }>();
  for (const sample of samples.filter(isPossible)) {
    const status = String(errorAnswer(sample.error).status);
    const known = answers.get(status);
    if (known === undefined) answers.set(status, { whens: [sample.when], sample });
    else if (!known.whens.includes(sample.when)) known.whens.push(sample.when);
  }
  const heads = Object.entries(headRefusals).map(([status, when]) => {
    const sample = { error: new ServiceError('invalidRequest', when), when };
    return [status, answerOf(sample, when, errorAnswer, schema)] as const;
  });
  const own = [...answers].map(
    ([status, { whens, sample }]) => [status, answerOf(sample, whens.join(' '), errorAnswer, schema)] as const,
  );
  return Object.fromEntries([...heads, ...own]);
}

function answerOf(
  { error }: Sample,
  description: string,
  errorAnswer: CompatFamily['errorAnswer'],
  schema: Schema,
): DescribedAnswer {
  const { headers = {}, body = '{}' } = errorAnswer(error);
  const told = Object.keys(headers).flatMap((name) => {
    const header = headerSchemas[name];
    return header === undefined ? [] : [[name, header] as const];
  });
  const example = JSON.parse(body.toString()) as Readonly<Record<string, unknown>>;
  return {
    description,
    ...(told.length === 0 ? {} : { headers: Object.fromEntries(told) }),
    content: {
      'application/json': { schema, example: 'id' in example ? { ...example, id: exampleId } : example },
    },
  };
}
