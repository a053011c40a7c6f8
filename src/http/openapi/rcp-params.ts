/** Owns the schemas of the params of RCP's methods, and calls that show them. */
import { protocolVersion, vectorOutputs, vendorKey, type vendorOptions } from '../../rpc/capabilities.ts';
import { vectorEncodings } from '../../rpc/encode.ts';
import { logLevels } from '../../rpc/log-level.ts';
import type { ControlMethod, TaskMethod } from '../../rpc/methods.ts';
import { lanes } from '../../rpc/options.ts';
import { modelNamesOf, type ApiFacts } from './api.ts';
import { count, flag, list, number, object, oneOfTexts, optional, ref, text, whole, type Schema } from './schema.ts';

/** What is said of one method. */
export interface MethodWords {
  readonly summary: string;
  readonly description: string;
  readonly params: Schema;
  /** Params of calls that work, the plainest first, by what they show. */
  readonly examples: Readonly<Record<string, unknown>>;
  /** Name in the components. */
  readonly result: string;
}

const options: Readonly<Record<Exclude<(typeof vendorOptions)[number], 'model'>, Schema>> = {
  truncate: flag('False refuses a text that is too long; absent or true: it is cut, and `usage` says so.'),
  dimensions: count('Length of the vectors, for models that may be cut.'),
  priority: oneOfTexts(lanes, 'Absent: interactive for a query or a single input, else bulk.'),
  output: oneOfTexts(vectorOutputs, 'Form of the numbers; integers as `json` only.', { default: vectorOutputs[0] }),
};

const meta = object(
  {
    deadlineMs: number(),
    progressToken: { type: ['string', 'integer'], description: 'Asks for frames of progress, as an event stream.' },
  },
  [],
  'About the call itself; what is malformed here is ignored.',
);

/** The methods of the machine's models. */
export function taskWords(facts: ApiFacts): Readonly<Record<TaskMethod, MethodWords>> {
  const { batchLimit, maxCandidates, deadlineMs } = facts.served.limits;
  const vendorOf = (method: TaskMethod): Schema => {
    const names = modelNamesOf(facts, method);
    const model = names.length === 0 ? text('One of the models of `info`.') : oneOfTexts(names);
    return { type: 'object', properties: optional({ ...options, model }), description: 'What RCP does not define.' };
  };
  const common = (method: TaskMethod) => ({
    [vendorKey]: vendorOf(method),
    _meta: { ...meta, description: `About the call itself. \`deadlineMs\` is at most ${deadlineMs}.` },
  });
  const many = (limit: number) => list(ref('TextOrBlock'), `At most ${limit}.`, { maxItems: limit });
  const strict = flag('False replaces an option that is not supported by its default, and `usage.notes` says so.');
  const encoding = oneOfTexts(vectorEncodings, 'How vectors are written.', { default: vectorEncodings[0] });
  const texts = { inputs: many(batchLimit), texts: { ...many(batchLimit), description: 'Another name of `inputs`.' } };
  const kind = oneOfTexts(['query', 'document'], 'What the texts are.');
  const vectorParams = (method: TaskMethod, more: Readonly<Record<string, Schema>>): Schema => ({
    ...object(optional({ ...texts, kind, ...more, ...common(method) })),
    anyOf: [{ required: ['inputs'] }, { required: ['texts'] }],
  });
  const told = { [vendorKey]: { truncate: true, priority: 'bulk' }, _meta: { deadlineMs } };
  const examples = {
    call: { inputs: ['red wine', 'white wine'], kind: 'document' },
    options: { inputs: ['red wine', { type: 'text', text: 'white wine' }], ...told },
  };
  const names = modelNamesOf(facts, 'rerank');
  return {
    embed: {
      summary: 'Dense vectors',
      description: 'One vector for each input, in its order.',
      params: vectorParams('embed', { encoding, strict }),
      examples,
      result: 'RcpEmbedResult',
    },
    'embed/sparse': {
      summary: 'Sparse vectors',
      description: 'The weighted terms of each input.',
      params: vectorParams('embed/sparse', {}),
      examples,
      result: 'RcpSparseResult',
    },
    'embed/multi': {
      summary: 'Multi-vectors',
      description: 'A vector for each token of each input.',
      params: vectorParams('embed/multi', { encoding, strict }),
      examples,
      result: 'RcpMultiResult',
    },
    rerank: {
      summary: 'Order passages by a query',
      description: 'A score for each passage: of a cross-encoder between 0 and 1, of colbert a sum of likenesses.',
      params: {
        ...object(
          {
            query: ref('TextOrBlocks'),
            ...optional({
              passages: many(maxCandidates),
              documents: { ...many(maxCandidates), description: 'Another name of `passages`.' },
              topN: count('Most passages of `order` and `results`.'),
              method: facts.rerankMethods.length === 0 ? text() : oneOfTexts(facts.rerankMethods),
              model: names.length === 0 ? text('One of the models of `info`.') : oneOfTexts(names),
              strict,
              ...common('rerank'),
            }),
          },
          ['query'],
        ),
        anyOf: [{ required: ['passages'] }, { required: ['documents'] }],
      },
      examples: {
        call: { query: 'which wine goes with fish?', passages: ['Red wine.', 'White wine with fish.'] },
        options: { query: [{ type: 'text', text: 'fish' }], passages: ['Red wine.', 'Fish.'], topN: 1, ...told },
      },
      result: 'RcpRerankResult',
    },
  };
}

/** The methods that need no model. */
export const controlWords: Readonly<Record<ControlMethod, MethodWords>> = {
  initialize: {
    summary: 'Open a session',
    description: 'Says what the server is and can do; over HTTP needed only where the server keeps a session.',
    params: object(
      optional({
        protocolVersion: whole('At least 1.', { default: protocolVersion, minimum: 1 }),
        client: object({ name: text(), version: text() }),
        capabilities: object({ log: { type: 'object', description: 'Asks for log entries; on stdio only.' } }),
        _meta: object({ logLevel: oneOfTexts(logLevels, 'Least level of log entries; on stdio only.') }),
      }),
    ),
    examples: {
      call: { protocolVersion, client: { name: 'example' } },
      log: { protocolVersion, capabilities: { log: {} }, _meta: { logLevel: 'warning' } },
    },
    result: 'RcpInfoResult',
  },
  info: {
    summary: 'What the server is and can do',
    description: 'Capabilities, models, limits and devices.',
    params: object({}),
    examples: { call: {} },
    result: 'RcpInfoResult',
  },
  ping: {
    summary: 'Whether the server answers',
    description: 'Waits for no device.',
    params: object({ nonce: { type: ['string', 'number', 'null'], description: 'Given back as it was sent.' } }),
    examples: { call: { nonce: 'abc' } },
    result: 'RcpPingResult',
  },
  shutdown: {
    summary: 'Close a session',
    description: 'The process and other sessions go on.',
    params: object({}),
    examples: { call: {} },
    result: 'RcpShutdownResult',
  },
};
