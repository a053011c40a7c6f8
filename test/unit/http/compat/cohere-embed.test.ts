import { describe, expect, it } from 'vitest';
import { invalidField } from '../../../../src/errors.ts';
import { cohereFamily } from '../../../../src/http/compat/cohere.ts';
import { integerOutputs, quantize } from '../../../../src/tensor/quantize.ts';
import { callRoute, vectorOf } from './fake-call.ts';

const texts = ['a b', 'c'];
const first = (body: object) => callRoute(cohereFamily, '/v1/embed', body);
const second = (body: object) => callRoute(cohereFamily, '/v2/embed', { input_type: 'clustering', ...body });
const floats = [Array.from(vectorOf(0), roundTrip), Array.from(vectorOf(1), roundTrip)];

/** The number that the shortest text of a float32 reads back as. */
function roundTrip(value: number): number {
  for (let digits = 1; digits < 10; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

describe('embed of Cohere', () => {
  it('version 1 without embedding_types gives plain lists of floats', async () => {
    const { status, json } = await first({ texts });
    expect(status).toBe(200);
    expect(json).toEqual({
      id: expect.stringMatching(/^[\da-f-]{36}$/),
      texts,
      embeddings: floats,
      meta: { api_version: { version: '1' }, billed_units: { input_tokens: 7 } },
      response_type: 'embeddings_floats',
      model: 'dense-a@1',
    });
  });

  it('version 1 with embedding_types, and version 2 always, gives one list for each type', async () => {
    const byType = { response_type: 'embeddings_by_type', embeddings: { float: floats } };
    expect((await first({ texts, embedding_types: ['float'] })).json).toMatchObject(byType);
    expect((await second({ texts })).json).toMatchObject({ ...byType, meta: { api_version: { version: '2' } } });
  });

  it('integer types are the integers that RCP gives, and base64 holds the floats', async () => {
    const { json } = await second({ texts, embedding_types: [...integerOutputs, 'base64', 'int8'] });
    const { embeddings } = json as { embeddings: Record<string, unknown[]> };
    expect(Object.keys(embeddings)).toEqual([...integerOutputs, 'base64']);
    for (const type of integerOutputs) {
      expect(embeddings[type]).toEqual([quantize(vectorOf(0), type), quantize(vectorOf(1), type)]);
    }
    const bytes = embeddings['base64']?.map((text) => Buffer.from(String(text), 'base64'));
    expect(bytes).toEqual([Buffer.from(vectorOf(0).buffer), Buffer.from(vectorOf(1).buffer)]);
  });

  it('search types become kinds, all others mean a text as it is', async () => {
    const kinds = { search_query: 'query', search_document: 'document', classification: null, clustering: null };
    for (const [type, kind] of Object.entries(kinds)) {
      expect((await first({ texts, input_type: type })).request).toMatchObject({ kind });
      expect((await second({ texts, input_type: type })).request).toMatchObject({ kind });
    }
    expect((await first({ texts })).request).toMatchObject({ kind: null });
  });

  it('truncate says which end is kept, and absent leaves that to the model', async () => {
    const kept = { NONE: 'refuse', START: 'keepEnd', END: 'keepStart' };
    for (const [truncate, truncation] of Object.entries(kept)) {
      expect((await first({ texts, truncate })).request).toMatchObject({ truncation });
    }
    expect((await first({ texts })).request).toMatchObject({ truncation: null });
  });

  it('the texts of version 2 may be inputs of text blocks', async () => {
    const block = (text: string) => ({ type: 'text', text });
    const inputs = [{ content: [block('a'), block('b')] }, { content: [block('c')] }];
    const { request, json } = await second({ inputs });
    expect(request).toMatchObject({ inputs: { values: ['a\nb', 'c'], field: 'inputs' } });
    expect(json).toMatchObject({ texts: ['a\nb', 'c'] });
  });

  it('output_dimension of version 2 cuts the vectors', async () => {
    expect((await second({ texts, output_dimension: 3 })).request).toMatchObject({ dimensions: 3 });
    expect((await first({ texts, output_dimension: 3 })).request).toMatchObject({ dimensions: null });
  });

  it('dimensions that the model does not have are refused by the name that the caller gave them', async () => {
    const failure = invalidField('dimensions', 'is 99, the model has 9');
    const refused = callRoute(cohereFamily, '/v2/embed', { texts, input_type: 'clustering' }, { failure });
    await expect(refused).rejects.toMatchObject({
      message: 'output_dimension: is 99, the model has 9',
      data: { field: 'output_dimension' },
    });
  });

  it('max_tokens is the limit of the task itself, and its own name where it is refused', async () => {
    expect((await second({ texts, max_tokens: 4 })).request).toMatchObject({ maxTokens: 4, inputs: { values: texts } });
    expect((await second({ texts })).request).toMatchObject({ maxTokens: null });
    const failure = invalidField('maxTokens', 'must be at least 3', { limit: 3, received: 2 });
    const refused = callRoute(cohereFamily, '/v2/embed', { texts, input_type: 'clustering' }, { failure });
    await expect(refused).rejects.toMatchObject({
      message: 'max_tokens: must be at least 3',
      data: { field: 'max_tokens', limit: 3, received: 2 },
    });
  });

  it('a model that embeds is chosen by its name, and any other name means the first', async () => {
    expect((await first({ texts, model: 'dense-b@1' })).request).toMatchObject({ model: 'dense-b@1' });
    for (const model of ['embed-english-v3.0', 'cross@1', null]) {
      expect((await first({ texts, model })).request).toMatchObject({ model: null });
    }
  });

  it('members that nobody knows are ignored', async () => {
    expect((await second({ texts, priority: 'x', nothing: [1] })).status).toBe(200);
  });

  it.each([
    [[], 'body'],
    [{}, 'texts'],
    [{ texts: 'a' }, 'texts'],
    [{ texts: [] }, 'texts'],
    [{ texts: ['a', 1] }, 'texts[1]'],
    [{ texts: [[1, 2]] }, 'texts[0]'],
    [{ texts: ['a'], model: 5 }, 'model'],
    [{ texts: ['a'], input_type: 'image' }, 'input_type'],
    [{ texts: ['a'], input_type: 5 }, 'input_type'],
    [{ texts: ['a'], truncate: 'LEFT' }, 'truncate'],
    [{ texts: ['a'], truncate: true }, 'truncate'],
    [{ texts: ['a'], embedding_types: 'float' }, 'embedding_types'],
    [{ texts: ['a'], embedding_types: ['float', 'int4'] }, 'embedding_types[1]'],
    [{ texts: ['a'], embedding_types: [1] }, 'embedding_types[0]'],
    [{ images: ['data:image/png;base64,AAAA'] }, 'images'],
  ])('%j is refused in both versions, and the field is named', async (body, field) => {
    const isObject = !Array.isArray(body);
    await expect(first(body)).rejects.toMatchObject({ data: { field } });
    await expect(isObject ? second(body) : first(body)).rejects.toMatchObject({ data: { field } });
  });

  it.each([
    [{ texts: ['a'], input_type: null }, 'input_type'],
    [{ texts: ['a'], inputs: [{ content: [{ type: 'text', text: 'a' }] }] }, 'inputs'],
    [{ inputs: [] }, 'inputs'],
    [{ inputs: 'a' }, 'inputs'],
    [{ inputs: ['a'] }, 'inputs[0]'],
    [{ inputs: [{ content: [] }] }, 'inputs[0].content'],
    [{ inputs: [{ content: [{ type: 'image_url', image_url: {} }] }] }, 'inputs[0].content[0].type'],
    [{ texts: ['a'], output_dimension: 0 }, 'output_dimension'],
    [{ texts: ['a'], max_tokens: '5' }, 'max_tokens'],
  ])('%j is refused in version 2, and the field is named', async (body, field) => {
    await expect(second(body)).rejects.toMatchObject({ data: { field } });
  });
});
