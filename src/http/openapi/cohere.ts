/** Owns the description of the routes of Cohere's clients, and of the rerank call that Jina's share. */
import { embeddingTypes, inputTypes, truncations } from '../compat/cohere/embed-request.ts';
import { maxRankFields } from '../compat/rerank/request.ts';
import { modelNamesOf, type ApiFacts, type DescribedBody, type FamilyWords, type RouteWords } from './api.ts';
import { modelSchema } from './openai.ts';
import {
  anyOf,
  count,
  exactly,
  flag,
  full,
  list,
  number,
  object,
  oneOfTexts,
  optional,
  ref,
  text,
  whole,
} from './schema.ts';
import type { Schema } from './schema.ts';

const meta = (units: Readonly<Record<string, Schema>>): Schema =>
  full({ api_version: full({ version: oneOfTexts(['1', '2']) }), billed_units: full(units) });
const vectors = list(list(number()));
const integers = list(list(whole()));
const byType: Readonly<Record<(typeof embeddingTypes)[number], Schema>> = {
  float: vectors,
  int8: integers,
  uint8: integers,
  binary: integers,
  ubinary: integers,
  base64: list(text('Little-endian binary32.', { contentEncoding: 'base64' })),
};
const embedAnswer = (embeddings: Schema): Schema =>
  full({
    id: text(),
    texts: list(text()),
    embeddings,
    meta: meta({ input_tokens: whole() }),
    response_type: oneOfTexts(['embeddings_floats', 'embeddings_by_type']),
    model: text('The model that ran.'),
  });

/** Schemas of the components. */
export const cohereSchemas: Readonly<Record<string, Schema>> = {
  CohereEmbeddingsByType: object(byType, [], 'One list of vectors for each type that was asked for.'),
  CohereEmbed: embedAnswer(ref('CohereEmbeddingsByType')),
  CohereEmbedV1: embedAnswer({ anyOf: [vectors, ref('CohereEmbeddingsByType')] }),
  Rerank: full({
    id: text(),
    model: text('The model that ran.'),
    object: exactly('list'),
    results: list(
      object(
        {
          index: whole('Place of the document in the request.', { minimum: 0 }),
          relevance_score: number(
            'The score of `rerank`; of a colbert model the sum divided by the rows of the query, so that none is above 1.',
          ),
          document: { type: 'object', description: 'The document as it was sent; a text as `{text}`.' },
        },
        ['index', 'relevance_score'],
      ),
      'Best first.',
    ),
    usage: full({ total_tokens: whole(), prompt_tokens: whole() }),
    meta: meta({ search_units: whole() }),
  }),
  CohereError: full({ id: text(), message: text() }),
};

/** The routes as configured. */
export function describeCohere(facts: ApiFacts): FamilyWords {
  return {
    tag: 'Cohere',
    error: 'CohereError',
    routes: {
      'POST /v1/embed': embed(facts, false),
      'POST /v2/embed': embed(facts, true),
      'POST /v2/rerank': {
        summary: 'Rerank as Cohere has it, version 2',
        description: 'Orders documents by how well they answer the query.',
        body: rerankBody(facts),
        answer: { description: 'The documents, best first.', schema: ref('Rerank') },
        task: 'rerank',
      },
    },
  };
}

function embed(facts: ApiFacts, isSecond: boolean): RouteWords {
  const [model] = modelNamesOf(facts, 'embed');
  const many = { minItems: 1, maxItems: facts.served.limits.batchLimit };
  const named = model === undefined ? {} : { model };
  const common = {
    ...(isSecond ? {} : { input_type: inputType }),
    model: modelSchema(facts),
    truncate: oneOfTexts(truncations, 'Where a text that is too long is cut; NONE refuses it.'),
    embedding_types: list(oneOfTexts(embeddingTypes), 'Forms of the vectors.'),
    images: { type: 'null', description: 'Refused: only text is served.' },
  };
  const second = {
    inputs: list(
      object({ content: list(ref('TextOrBlock'), undefined, { minItems: 1 }) }, ['content']),
      'Texts as blocks.',
      many,
    ),
    max_tokens: count('Most tokens of a text.'),
    output_dimension: count('Length of the vectors, for models that may be cut.'),
  };
  const texts = list(ref('TextOrBlock'), 'The texts.', many);
  const value = { texts: ['red wine', 'white wine'], input_type: 'search_document', ...named };
  const blocks = [{ content: [{ type: 'text', text: 'red wine' }] }];
  const int8 = {
    texts: ['which wine goes with fish?'],
    input_type: 'search_query',
    embedding_types: ['float', 'int8'],
  };
  return {
    summary: `Embeddings as Cohere has them, version ${isSecond ? 2 : 1}`,
    description: 'The vectors of `embed`; `input_type` search_query and search_document are its kinds.',
    body: {
      schema: isSecond
        ? {
            ...object({ input_type: inputType, ...optional({ ...common, texts, ...second }) }, ['input_type']),
            oneOf: ['texts', 'inputs'].map((name) => object({ [name]: { type: 'array' } }, [name])),
          }
        : object({ texts, ...optional(common) }, ['texts']),
      examples: {
        texts: { summary: 'Two documents', value },
        types: { summary: 'A query, in two forms', value: int8 },
        ...(isSecond && {
          blocks: { summary: 'Texts as blocks', value: { inputs: blocks, input_type: 'classification' } },
        }),
      },
    },
    answer: {
      description: 'One vector for each text, in its order.',
      schema: ref(isSecond ? 'CohereEmbed' : 'CohereEmbedV1'),
    },
    task: 'embed',
  };
}

const inputType = oneOfTexts(inputTypes, 'What the texts are.');

/** Jina's clients send a text as an object without a type. */
const queryText = anyOf([text(), object({ text: text(), type: { enum: ['text', null] } }, ['text'])]);

/** What is sent to every rerank route of Cohere and Jina. */
export function rerankBody(facts: ApiFacts): DescribedBody {
  const [model] = modelNamesOf(facts, 'rerank');
  const query = 'which wine goes with fish?';
  const documents = ['Red wine goes with meat.', 'White wine goes with fish.'];
  const fields = documents.map((body, index) => ({ title: `Page ${index + 1}`, text: body }));
  const named = model === undefined ? {} : { model };
  return {
    schema: object(
      {
        query: anyOf([queryText, list(queryText, 'Joined by a newline.')]),
        documents: list(
          { anyOf: [text(), { type: 'object', description: 'Its `text`, or the members that `rank_fields` names.' }] },
          'What is ordered.',
          { minItems: 1, maxItems: facts.served.limits.maxCandidates },
        ),
        ...optional({
          model: modelSchema(facts),
          top_n: count('Most documents of the answer.'),
          return_documents: flag('Whether the answer holds the documents.'),
          rank_fields: list(text(), 'Members of a document that are read.', {
            maxItems: maxRankFields,
            default: ['text'],
          }),
          max_tokens_per_doc: count('Most tokens of a document; longer ones are cut.'),
          max_chunks_per_doc: count('Taken and ignored: a document is read once.'),
          max_doc_length: count("Jina's name of `max_tokens_per_doc`."),
          truncation: flag('False refuses what is too long.'),
        }),
      },
      ['query', 'documents'],
    ),
    examples: {
      texts: { summary: 'Two texts', value: { query, documents, ...named } },
      fields: {
        summary: 'The best of two documents with members',
        value: { query, documents: fields, rank_fields: ['title', 'text'], top_n: 1, return_documents: true },
      },
    },
  };
}
