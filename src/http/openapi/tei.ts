/** Owns the description of the routes of text-embeddings-inference's clients. */
import { vendorKey } from '../../rpc/capabilities.ts';
import { maxId, truncationDirections } from '../compat/tei/inputs.ts';
import {
  isServed,
  modelNamesOf,
  type ApiFacts,
  type DescribedBody,
  type Examples,
  type FamilyWords,
  type RouteWords,
} from './api.ts';
import { anyOf, count, flag, full, list, number, object, oneOfTexts, optional, ref, text, whole } from './schema.ts';
import type { Schema } from './schema.ts';

const numbers = list(number());
const place = (description: string): Schema => ({ type: ['integer', 'null'], description, minimum: 0 });
const known = (schema: Schema): Schema => ({ ...schema, type: [schema['type'], 'null'] });

/** Schemas of the components. */
export const teiSchemas: Readonly<Record<string, Schema>> = {
  TeiVectors: list(numbers, 'One vector for each input.'),
  TeiSparse: list(list(full({ index: whole('Term.'), value: number('Weight.') })), 'The terms of each input.'),
  TeiRows: list(list(numbers), 'The row of each token of each input.'),
  TeiRanks: list(
    object({ index: whole('Place in `texts`.'), score: number(), text: text() }, ['index', 'score']),
    'Best first.',
  ),
  TeiSimilarities: list(number(), 'The cosine of each sentence with the source sentence.'),
  TeiTokens: list(
    list(
      full({
        id: whole(),
        text: text(),
        special: flag(),
        start: place('First byte of UTF-8.'),
        stop: place('Byte after the last.'),
      }),
    ),
    'The tokens of each text.',
  ),
  TeiTexts: list(text()),
  TeiInfo: full({
    model_id: known(text()),
    model_sha: known(text()),
    model_dtype: known(text()),
    served_model_name: known(text()),
    model_type: { type: ['object', 'null'], additionalProperties: true },
    max_concurrent_requests: whole(),
    max_input_length: known(whole()),
    max_batch_tokens: whole(),
    max_batch_requests: known(whole()),
    max_client_batch_size: whole(),
    auto_truncate: flag(),
    tokenization_workers: whole(),
    version: text(),
    sha: { type: 'null' },
    docker_label: { type: 'null' },
  }),
  TeiError: full({ error: text(), error_type: text() }),
};

const filled = text(undefined, { minLength: 1 });
const ids = list(whole(undefined, { minimum: 0, maximum: maxId }), 'Token ids, as `/tokenize` gives them.', {
  minItems: 1,
});

const cutting = {
  truncate: flag('True cuts a text that is too long; else it is refused.'),
  truncation_direction: oneOfTexts(truncationDirections, 'The side that is cut away.', {
    default: truncationDirections[0],
  }),
};
const vendor = {
  [vendorKey]: object(
    optional({ model: text('One of the models of `info`.') }),
    [],
    'What these routes do not define.',
  ),
};
const prompt = { prompt_name: text('Name of the prompt before each text, exactly as the files of the model have it.') };

/** The routes as configured. */
export function describeTei(facts: ApiFacts): FamilyWords {
  const { batchLimit, maxCandidates } = facts.served.limits;
  const many = { minItems: 1, maxItems: batchLimit };
  const inputs = anyOf([filled, ids, list(anyOf([filled, ids]), undefined, many)]);
  const inputsExample = { texts: { summary: 'Two texts', value: { inputs: ['red wine', 'white wine'] } } };
  const vectorBody = (more: Readonly<Record<string, Schema>>): DescribedBody => ({
    schema: object({ inputs, ...optional({ ...cutting, ...prompt, ...more }) }, ['inputs']),
    examples: inputsExample,
  });
  const embedBody = vectorBody({
    normalize: flag('Whether vectors have length 1; absent: as the model was made.'),
    dimensions: count('Length of the vectors, for models that may be cut.'),
  });
  const rank: DescribedBody = {
    schema: object(
      {
        query: text(),
        texts: list(text(), 'What is ordered.', { minItems: 1, maxItems: maxCandidates }),
        ...optional({
          ...cutting,
          raw_scores: flag('True: the logit, or the sum of a colbert model.'),
          return_text: flag('True: the answer holds the texts.'),
        }),
      },
      ['query', 'texts'],
    ),
    examples: {
      ranked: {
        summary: 'Two texts to be ordered',
        value: { query: 'which wine goes with fish?', texts: ['Red wine.', 'White wine with fish.'] },
      },
    },
  };
  const similarity: DescribedBody = {
    schema: object(
      {
        inputs: full({
          source_sentence: filled,
          sentences: list(filled, 'With the source no more than the limit of a list.', {
            minItems: 1,
            maxItems: Math.max(1, batchLimit - 1),
          }),
        }),
        parameters: { type: ['object', 'null'], properties: optional({ ...cutting, ...prompt }) },
      },
      ['inputs'],
    ),
    examples: {
      sentences: {
        summary: 'Two sentences compared with one',
        value: {
          inputs: { source_sentence: 'red wine', sentences: ['white wine', 'a bicycle'] },
          parameters: { truncate: true },
        },
      },
    },
  };
  const isSparseOnly = !isServed(facts, 'embed') && isServed(facts, 'embed/sparse');
  return {
    tag: 'text-embeddings-inference',
    error: 'TeiError',
    routes: {
      'POST /': {
        summary: 'The route that the body is made for',
        description: '`texts` are ranked, a source sentence is compared, anything else is embedded.',
        body: {
          schema: { anyOf: [embedBody, rank, similarity].map(({ schema }) => schema) },
          examples: { ...embedBody.examples, ...rank.examples, ...similarity.examples },
        },
        answer: {
          description: 'As that route answers.',
          schema: { anyOf: [isSparseOnly ? 'TeiSparse' : 'TeiVectors', 'TeiRanks', 'TeiSimilarities'].map(ref) },
        },
        task: null,
      },
      'POST /embed': {
        summary: 'Vectors',
        description: 'The vectors of `embed`.',
        body: embedBody,
        answer: { description: 'One vector for each input, in its order.', schema: ref('TeiVectors') },
        task: 'embed',
      },
      'POST /embed_sparse': {
        summary: 'Sparse vectors',
        description: 'The terms of `embed/sparse`.',
        body: vectorBody({}),
        answer: { description: 'The terms of each input.', schema: ref('TeiSparse') },
        task: 'embed/sparse',
      },
      'POST /embed_all': {
        summary: 'A row for each token',
        description: 'The raw rows of the encoder, neither pooled nor normalised.',
        body: vectorBody({}),
        answer: { description: 'The rows of each input.', schema: ref('TeiRows') },
        task: 'embed',
      },
      'POST /rerank': {
        summary: 'Rerank as text-embeddings-inference has it',
        description: 'Orders texts by how well they answer the query. A body with `texts` is a call of this kind.',
        body: rank,
        answer: { description: 'The texts, best first.', schema: ref('TeiRanks') },
        task: 'rerank',
      },
      'POST /similarity': {
        summary: 'How alike sentences are',
        description: 'The cosine of the vectors of `embed`.',
        body: similarity,
        answer: { description: 'One number for each sentence.', schema: ref('TeiSimilarities') },
        task: 'embed',
      },
      ...tokenRoutes(many, modelNamesOf(facts, 'embed')[0]),
      'GET /info': {
        summary: 'The server as text-embeddings-inference shows it',
        description: 'The first model that makes vectors, and the limits.',
        answer: { description: 'Model and limits.', schema: ref('TeiInfo') },
        task: null,
      },
    },
  };
}

function tokenRoutes(
  many: Schema,
  model: string | undefined,
): Readonly<Record<'POST /tokenize' | 'POST /decode', RouteWords>> {
  const naming = (value: object): Examples =>
    model === undefined
      ? {}
      : { named: { summary: 'Of a model by its name', value: { ...value, [vendorKey]: { model } } } };
  return {
    'POST /tokenize': {
      summary: 'Tokens of texts',
      description: 'As the first embedding model reads them, or the named one, uncut.',
      body: {
        schema: object(
          {
            inputs: anyOf([filled, list(filled, undefined, many)]),
            ...optional({
              add_special_tokens: flag('Whether special tokens stand around them; true.'),
              ...prompt,
              ...vendor,
            }),
          },
          ['inputs'],
        ),
        examples: {
          texts: { summary: 'One text', value: { inputs: 'red wine' } },
          ...naming({ inputs: 'red wine' }),
        },
      },
      answer: { description: 'The tokens of each text.', schema: ref('TeiTokens') },
      task: null,
    },
    'POST /decode': {
      summary: 'Texts of tokens',
      description: 'The texts that token ids of the first embedding model, or of the named one, stand for.',
      body: {
        schema: object(
          {
            ids: anyOf([ids, list(ids, undefined, many)]),
            ...optional({ skip_special_tokens: flag('Whether special tokens are left out; true.'), ...vendor }),
          },
          ['ids'],
        ),
        examples: {
          ids: { summary: 'Two lists of ids', value: { ids: [[101, 102], [103]] } },
          ...naming({ ids: [101, 102] }),
        },
      },
      answer: { description: 'One text for each list.', schema: ref('TeiTexts') },
      task: null,
    },
  };
}
