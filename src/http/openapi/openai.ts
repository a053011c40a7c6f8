/** Owns the description of the routes of OpenAI's clients. */
import { embeddingFormats } from '../compat/openai/request.ts';
import { modelNamesOf, type ApiFacts, type FamilyWords, type RouteWords } from './api.ts';
import { anyOf, count, exactly, full, list, number, object, oneOfTexts, optional, ref, text, whole } from './schema.ts';
import type { Schema } from './schema.ts';

/** Schemas of the components. */
export const openaiSchemas: Readonly<Record<string, Schema>> = {
  OpenaiEmbeddings: full({
    object: exactly('list'),
    data: list(
      full({
        object: exactly('embedding'),
        index: whole('Place of the input.', { minimum: 0 }),
        embedding: {
          anyOf: [list(number()), text('Little-endian binary32, in base64.', { contentEncoding: 'base64' })],
        },
      }),
    ),
    model: text('The model that ran.'),
    usage: full({ prompt_tokens: whole(), total_tokens: whole() }),
  }),
  OpenaiModel: full({ id: text(), object: exactly('model'), created: whole(), owned_by: text() }),
  OpenaiModels: full({ object: exactly('list'), data: list(ref('OpenaiModel')) }),
  OpenaiError: full({
    error: full({
      message: text(),
      type: text(),
      param: { type: ['string', 'null'], description: 'The member that was wrong.' },
      code: { type: ['string', 'null'] },
    }),
  }),
};

/** The routes as configured. */
export function describeOpenai(facts: ApiFacts): FamilyWords {
  const [model] = modelNamesOf(facts, 'embed');
  const embeddings: RouteWords = {
    summary: 'Embeddings as OpenAI has them',
    description:
      'The vectors of `embed` for the same texts. A text that is too long is refused, as OpenAI does, never cut.',
    body: {
      schema: object(
        {
          input: anyOf(inputForms(facts)),
          ...optional({
            model: modelSchema(facts),
            encoding_format: oneOfTexts(embeddingFormats, 'How vectors are written.', { default: embeddingFormats[0] }),
            dimensions: count('Length of the vectors, for models that may be cut.'),
          }),
          user: { description: 'Taken and ignored, whatever it is.' },
        },
        ['input'],
      ),
      examples: {
        texts: { summary: 'Two texts', value: { input: ['red wine', 'white wine'], ...(model && { model }) } },
        base64: { summary: 'One text, packed', value: { input: 'red wine', encoding_format: 'base64' } },
      },
    },
    answer: { description: 'One vector for each input, in its order.', schema: ref('OpenaiEmbeddings') },
    task: 'embed',
  };
  return {
    tag: 'OpenAI',
    error: 'OpenaiError',
    routes: {
      'POST /v1/embeddings': embeddings,
      'POST /embeddings': {
        ...embeddings,
        summary: 'The same, where text-embeddings-inference has it',
      },
      'GET /v1/models': {
        summary: 'The models that are served',
        description: 'Every model, whatever it is for.',
        answer: { description: 'The models, in the order of the settings.', schema: ref('OpenaiModels') },
        task: null,
      },
      'GET /v1/models/:id': {
        summary: 'One model',
        description: 'The model of this name.',
        answer: { description: 'The model.', schema: ref('OpenaiModel') },
        task: null,
        pathName: 'Name of the model; slashes need no escape.',
      },
    },
  };
}

function inputForms({ served, openaiTokenIds }: ApiFacts): Schema[] {
  const filled = text(undefined, { minLength: 1 });
  const many = { minItems: 1, maxItems: served.limits.batchLimit };
  const texts = [filled, list(filled, 'Texts.', many)];
  const ids = list(whole(undefined, { minimum: 0 }), "Ids of the model's own vocabulary.", { minItems: 1 });
  return openaiTokenIds === 'refuse' ? texts : [...texts, ids, list(ids, 'Several of these.', many)];
}

/** `model` of the services whose clients must name one. */
export function modelSchema(facts: ApiFacts): Schema {
  const { served } = facts;
  const rule =
    served.modelNames === 'any'
      ? 'A model that is served; any other name means the first, and the answer says which one ran.'
      : 'A model that is served; any other name is 404.';
  return text(rule);
}
