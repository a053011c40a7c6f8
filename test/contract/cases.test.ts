import { describe, expect } from 'vitest';
import { batch, embedding, failure, ok, request, vectors } from '../support/harness/frames.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import { answers, answersEach, onBoth } from '../support/harness/rows.ts';

const textMethods = ['embed', 'embed/sparse', 'embed/multi'];
const a = [97, 0, 0, 0];

describe('what users of comparable servers ran into', () => {
  onBoth('token ids are refused by name, in each form and by each method', async (client) => {
    for (const method of textMethods) {
      for (const inputs of [[15339, 1917], [[57668, 53901]]]) {
        const { value } = await client.ask(request(1, method, { inputs }));
        expect(value).toMatchObject(failure(1, -32602, { field: 'inputs[0]' }));
        expect(value.error.message).toMatch(/token ids/);
      }
    }
    await answers(client, embedding(2, 'a'), vectors(2, a));
  });

  onBoth('a list inside a list is neither a pair nor a batch', async (client) => {
    for (const method of textMethods) {
      await answers(client, request(1, method, { inputs: [['a'], ['b']] }), failure(1, -32602, { field: 'inputs[0]' }));
    }
    const pairs = request(1, 'rerank', { query: 'a', passages: [['a', 'b']] });
    await answers(client, pairs, failure(1, -32602, { field: 'passages[0]' }));
  });

  onBoth('unknown values of known options are refused, each by its field; null is none', async (client) => {
    const call = (option: object) => request(1, 'embed', { inputs: ['a'], ...option });
    const vendor = (option: object) => call({ 'x-trivec': option });
    const unsupported = (field: string) => failure(1, -32005, { field });
    const wrong = (field: string) => failure(1, -32602, { field });
    await answersEach(client, [
      [vendor({ truncate: 'yes' }), wrong('x-trivec.truncate')],
      [vendor({ truncate: 0 }), wrong('x-trivec.truncate')],
      [vendor({ dimensions: 0 }), wrong('x-trivec.dimensions')],
      [vendor({ dimensions: '2' }), wrong('x-trivec.dimensions')],
      [vendor({ dimensions: 2 }), unsupported('x-trivec.dimensions')],
      [vendor({ priority: 'high' }), unsupported('x-trivec.priority')],
      [vendor({ priority: 'Bulk' }), unsupported('x-trivec.priority')],
      [vendor({ priority: 1 }), wrong('x-trivec.priority')],
      [vendor({ output: 'int4' }), unsupported('x-trivec.output')],
      [vendor({ output: true }), wrong('x-trivec.output')],
      [call({ 'x-trivec': { output: 'int8' }, encoding: 'f32-base64' }), unsupported('x-trivec.output')],
      [call({ 'x-trivec': 5 }), wrong('x-trivec')],
      [call({ 'x-trivec': [] }), wrong('x-trivec')],
      [vendor({ truncate: null, dimensions: null, priority: null, output: null }), vectors(1, a)],
      [vendor({ dimensions: 4, priority: 'bulk', output: 'float32', truncate: false, unheard: 1 }), vectors(1, a)],
    ]);
  });

  onBoth('unknown names of options change nothing', async (client) => {
    for (const name of ['model', 'user', 'dimensions', 'truncate', 'input_type', 'normalize', 'pooling', 'x-other']) {
      await answers(client, request(1, 'embed', { inputs: ['a'], [name]: 'nope' }), vectors(1, a));
    }
  });

  onBoth('the id is in the answer of every class of error', async (client, server) => {
    const call = (method: string, params: object) => request('k1', method, params);
    const accepted = await fillQueue(client, server);
    await answers(client, call('embed', { inputs: ['a'] }), failure('k1', -32011));
    server.engine.release();
    await Promise.all(accepted);
    await answersEach(client, [
      ['{"jsonrpc":"1.0","id":"k1","method":"ping"}', failure('k1', -32600)],
      [call('embed', {}), failure('k1', -32602)],
      [call('retrieve', {}), failure('k1', -32003)],
      [call('no/such', {}), failure('k1', -32004)],
      [call('embed', { inputs: [], encoding: 'x' }), failure('k1', -32005)],
      [call('embed', { inputs: ['a'], _meta: { deadlineMs: 0 } }), failure('k1', -32014)],
      [call('embed', { inputs: ['boom'] }), failure('k1', -32603)],
      [call('embed', { inputs: ['down'] }), failure('k1', -32010)],
    ]);
  });

  onBoth('junk and a good call in one batch are answered by their places', async (client) => {
    const invalid = failure(null, -32600);
    const { value } = await client.ask(batch('1', 'null', '{}', '[]', '"x"', embedding(1, 'a')));
    expect(value).toMatchObject([invalid, invalid, invalid, invalid, invalid, ok(1, { vectors: [a] })]);
  });
});
