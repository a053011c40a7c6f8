/** Owns the description of RCP over HTTP: one path for each method, one for any frame, one for lists of frames. */
import { controlMethods, taskCapabilities, type TaskMethod } from '../../rpc/methods.ts';
import { basePath } from '../path.ts';
import { emptyAnswer, isServed, type ApiFacts, type DescribedAnswer, type Operation } from './api.ts';
import { challenge, emptyHeadRefusals, retryAfter } from './errors.ts';
import { controlWords, taskWords, type MethodWords } from './rcp-params.ts';
import { id } from './rcp-schemas.ts';
import { exactly, full, list, object, orNull, ref, text, type Schema } from './schema.ts';

const tag = 'RCP';
/** Where lists of frames go as well. */
const batchPath = `${basePath}/batch`;

type NamedWords = readonly [method: string, words: MethodWords];

/** Every method that is offered: those without a model are left out, as `info` leaves out their capability. */
function offered(facts: ApiFacts): readonly NamedWords[] {
  const tasks = taskWords(facts);
  const served = (Object.keys(taskCapabilities) as TaskMethod[]).filter((method) => isServed(facts, method));
  return [
    ...controlMethods.map((method): NamedWords => [method, controlWords[method]]),
    ...served.map((method): NamedWords => [method, tasks[method]]),
  ];
}

/** Schemas of the calls, for the components. */
export const rcpCallSchemas = (facts: ApiFacts): Readonly<Record<string, Schema>> =>
  Object.fromEntries(offered(facts).map(([method, { params }]) => [callName(method), callSchema(method, params)]));

/** `embed/sparse` is `RcpEmbedSparseCall`. */
const callName = (method: string) =>
  `Rcp${method.replace(/(?:^|\/)(\w)/g, (_, letter: string) => letter.toUpperCase())}Call`;

const callSchema = (method: string, params: Schema): Schema =>
  object({ jsonrpc: exactly('2.0'), id, method: exactly(method), params: orNull(params) }, ['id', 'method']);

/** Every operation under the base path. */
export function rcpOperations(facts: ApiFacts): readonly Operation[] {
  const methods = offered(facts);
  return [
    ...frameOperations(facts, methods),
    ...methods.map(([method, { summary, description, examples, result }]): Operation => {
      const calls = Object.entries(examples).map(([name, params]) => {
        const value = { jsonrpc: '2.0', id: 1, method, params };
        return [name, { summary: `${summary} (${name})`, value }] as const;
      });
      return {
        method: 'post',
        path: `${basePath}/${method}`,
        tag,
        summary,
        description,
        needsKey: facts.hasKey,
        body: { schema: ref(callName(method)), examples: Object.fromEntries(calls) },
        answers: answersOf({
          anyOf: [full({ jsonrpc: exactly('2.0'), id, result: ref(result) }), ref('RcpError')],
        }),
      };
    }),
  ];
}

function frameOperations(facts: ApiFacts, methods: readonly NamedWords[]): readonly Operation[] {
  const notification: Schema = {
    ...object(
      {
        jsonrpc: exactly('2.0'),
        method: text('A method, or `notifications/cancel` with the `id` of a call.'),
        params: { type: ['object', 'null'], properties: { id } },
      },
      ['method'],
      'A notification: it has no `id` and is never answered.',
    ),
    not: { required: ['id'] },
  };
  const frame: Schema = { anyOf: [...methods.map(([method]) => ref(callName(method))), notification] };
  const frames = list(frame, `At most ${facts.limits.maxBatchMembers} frames.`, { minItems: 1 });
  const answer: Schema = { anyOf: [ref('RcpSuccess'), ref('RcpError')] };
  const pair = [methods.find(([method]) => method === 'ping'), methods.at(-1)];
  const calls = pair.flatMap((named, index) => {
    if (named === undefined) return [];
    const [method, { examples }] = named;
    return [{ jsonrpc: '2.0', id: index + 1, method, params: examples['call'] }];
  });
  const shared = {
    method: 'post',
    tag,
    needsKey: facts.hasKey,
    body: {
      schema: { anyOf: [frame, frames] },
      examples: {
        batch: { summary: 'Two calls', value: calls },
        call: { summary: 'One call', value: calls[0] },
      },
    },
    answers: answersOf({ anyOf: [answer, list(answer)] }),
  } as const;
  return [
    {
      ...shared,
      path: basePath,
      summary: 'Any frame, or a list of frames',
      description: 'The method stands in the frame. A list is answered by a list, in any order; match by `id`.',
    },
    {
      ...shared,
      path: batchPath,
      summary: 'The same, under another path',
      description: 'For clients that send lists to a path of their own.',
    },
  ];
}

/** Answers of RCP: its errors are frames with status 200, overload among them. */
const answersOf = (schema: Schema): Readonly<Record<string, DescribedAnswer>> => ({
  200: {
    description: 'A result or an error. Overload is one too (`-32011`), with `Retry-After`.',
    headers: { ...retryAfter, 'Server-Timing': text('How long the call took, and where.') },
    content: {
      'application/json': { schema },
      'text/event-stream': {
        schema: text('Progress, and the answer as the last event, where `_meta.progressToken` asked for it.'),
      },
    },
  },
  204: emptyAnswer('Nothing but notifications were sent.'),
  401: {
    description: 'The bearer key is missing or wrong.',
    headers: challenge,
    content: { 'application/json': { schema: ref('RcpError') } },
  },
  ...emptyHeadRefusals([403, 405, 408, 415]),
});
