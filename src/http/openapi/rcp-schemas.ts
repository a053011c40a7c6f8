/** Owns the schemas of RCP's frames and results. */
import { errorCatalogue, type ErrorData } from '../../errors.ts';
import { vendorKey, vendorOptions } from '../../rpc/capabilities.ts';
import { vectorEncodings, type CallUsage } from '../../rpc/encode.ts';
import { anyOf, count, exactly, flag, full, list, number, object, oneOfTexts, ref, text, whole } from './schema.ts';
import type { Schema } from './schema.ts';

/** The id of a call, given back as it was sent. */
export const id: Schema = { type: ['string', 'number'], description: 'Given back as it was sent.' };

const errorData: Readonly<Record<keyof ErrorData | 'retryable', Schema>> = {
  field: text('The member that was wrong, such as `inputs[2]`.'),
  option: text('The value that is not supported.'),
  supported: list(text()),
  limit: whole(),
  received: whole(),
  tokens: whole('Tokens of a text that is too long.'),
  tokensIsMinimum: flag('True where the rest was not counted.'),
  retryAfterMs: number('Milliseconds after which the same call may succeed.'),
  detail: text(),
  retryable: flag('Whether the same call may succeed later without a change.'),
};

const codes = Object.entries(errorCatalogue).map(([, { code, when }]) => `* ${code}: ${when}`);

const ms = (description: string): Schema => whole(description, { minimum: 0 });
const usageOf: Readonly<Record<keyof CallUsage, Schema>> = {
  inputTokens: whole('Real tokens, after truncation, with special tokens, without padding.', { minimum: 0 }),
  truncated: list(whole(undefined, { minimum: 0 }), 'Places of the inputs that were cut.'),
  latencyMs: ms('From the frame to the answer.'),
  queueMs: ms('Until the first run began.'),
  computeMs: ms('In the engine.'),
  device: text('The device that ran it; absent where nothing had to run.'),
  candidates: whole('Passages given.'),
  reranked: whole('Passages scored.'),
  notes: list(text(), 'What was done otherwise than asked, where `strict` is false.'),
};
const { candidates, reranked, ...usageOfVectors } = usageOf;
const alwaysTold = ['inputTokens', 'truncated', 'latencyMs', 'queueMs', 'computeMs'];

const vector: Schema = {
  anyOf: [list(number()), text('Little-endian binary32, in base64.', { contentEncoding: 'base64' })],
};
const encoding = oneOfTexts(vectorEncodings);
const dimension = count('Length of each vector or row before it is packed.');
const usage = ref('RcpUsage');
const vendor = ref('RcpResultVendor');
const model = object({ id: text(), identity: text(), maxInputTokens: whole() }, ['id', 'identity', 'maxInputTokens']);
const open = (schema: Schema): Schema => ({ ...schema, additionalProperties: true });
const perMethod = (of: Schema): Schema =>
  object({ embed: of, sparseEmbed: of, multiVector: of, rerank: of }, [], 'By capability.');

const info = object(
  {
    protocolVersion: whole(),
    server: full({ name: text(), version: text() }),
    capabilities: {
      type: 'object',
      additionalProperties: { type: 'object' },
      description: 'What is offered, by name.',
    },
    _meta: object({ conformance: text(), session: text('Token of the session that was opened.') }, ['conformance']),
    [vendorKey]: full({
      devices: list(
        full({
          id: text(),
          executionProvider: text(),
          name: text(),
          precision: text(),
          state: oneOfTexts(['starting', 'ready', 'down']),
          serves: list(text()),
        }),
      ),
      unusedDevices: list(full({ id: text(), reason: text() })),
      maxInputTokens: perMethod(whole()),
      models: perMethod(list(open(model))),
      limits: full({ batchMembers: whole(), bodyBytes: whole(), deadlineMs: whole() }),
      options: list(oneOfTexts(vendorOptions)),
    }),
  },
  ['protocolVersion', 'server', 'capabilities', '_meta', vendorKey],
);

/** Schemas of the components. */
export const rcpSchemas: Readonly<Record<string, Schema>> = {
  TextBlock: full({ type: exactly('text'), text: text() }),
  TextOrBlock: anyOf([text(), ref('TextBlock')]),
  TextOrBlocks: anyOf([text(), ref('TextBlock'), list(ref('TextBlock'), 'Joined by a newline.')]),
  RcpUsage: object(usageOfVectors, alwaysTold),
  RcpRerankUsage: object({ ...usageOfVectors, candidates, reranked }, [...alwaysTold, 'candidates', 'reranked']),
  RcpError: full({
    jsonrpc: exactly('2.0'),
    id: { type: ['string', 'number', 'null'], description: 'Null where the frame has none that can be read.' },
    error: object(
      {
        code: {
          type: 'integer',
          enum: Object.values(errorCatalogue).map(({ code }) => code),
          description: codes.join('\n'),
        },
        message: text('One sentence; never the text of the request.'),
        data: object(errorData, ['retryable']),
      },
      ['code', 'message', 'data'],
    ),
  }),
  RcpSuccess: full({ jsonrpc: exactly('2.0'), id, result: { type: 'object', additionalProperties: true } }),
  RcpInfoResult: info,
  RcpPingResult: object({ nonce: { type: ['string', 'number'], description: 'As it was sent.' } }),
  RcpShutdownResult: object({}),
  RcpResultVendor: full({ identity: text('Of the model that gave the values, as `info` names it.') }),
  RcpEmbedResult: full({ vectors: list(vector), encoding, dimension, usage, [vendorKey]: vendor }),
  RcpSparseResult: full({
    sparse: list(full({ indices: list(whole()), values: list(number()) })),
    usage,
    [vendorKey]: vendor,
  }),
  RcpMultiResult: full({ matrices: list(list(vector)), encoding, dimension, usage, [vendorKey]: vendor }),
  RcpRerankResult: full({
    scores: list(number(), 'In the order of the passages.'),
    order: list(whole(), 'Places of the passages, best first.'),
    results: list(full({ index: whole(), score: number() }), 'The same, best first.'),
    usage: ref('RcpRerankUsage'),
    [vendorKey]: vendor,
  }),
};
