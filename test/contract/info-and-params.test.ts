import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { embedding, exactly, failure, notification, ok, pong, request, vectors } from '../support/harness/frames.ts';
import { answers, answersEach, onBoth } from '../support/harness/rows.ts';

const rawPing = (rawNonce: string) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nonce":${rawNonce}}}`;
const embed = (params: object) => request(1, 'embed', params);
const rerank = (params: object) => request(1, 'rerank', { query: 'a', passages: ['b', 'a', 'a a'], ...params });
const image = { type: 'image', mimeType: 'image/png', data: 'AAAA' };

describe('1.H info and ping', () => {
  onBoth('M-01 ping echoes the nonce character by character', async (client) => {
    for (const rawNonce of ['777', '"x"', '0', '""', '1.5', '9007199254740993', '1e400', '-0', '"\\u0041\\n"']) {
      const { text } = await client.ask(rawPing(rawNonce));
      expect(text).toBe(`{"jsonrpc":"2.0","id":1,"result":{"nonce":${rawNonce}}}`);
    }
    await answers(client, request(1, 'ping', {}), pong(1));
  });

  onBoth('M-02 a nonce that is null is no nonce', async (client) => {
    await answers(client, rawPing('null'), pong(1));
  });

  onBoth('M-03 a nonce of another type is -32602', async (client) => {
    for (const rawNonce of ['{}', '[]', 'true', 'false', '[1]']) {
      await answers(client, rawPing(rawNonce), failure(1, -32602, { field: 'nonce' }));
    }
  });

  onBoth('M-04 ping answers at any time and changes nothing', async (client, server) => {
    const slow = client.ask(embedding(1, 'hold'));
    await server.untilBusy(1, 0);
    const before = (await client.ask(request(2, 'info'))).value.result.capabilities;
    for (let id = 3; id < 20; id++) await answers(client, request(id, 'ping', { nonce: id }), pong(id, id));
    expect((await client.ask(request(20, 'info'))).value.result.capabilities).toEqual(before);
    server.engine.release();
    expect((await slow).value).toMatchObject(ok(1));
  });

  onBoth('M-05 info takes any object', async (client) => {
    const expected = ok(1, { protocolVersion: 1, server: { name: 'fixture' }, _meta: { conformance: 'L0' } });
    for (const params of [undefined, null, {}, { a: [1], _meta: 5 }])
      await answers(client, request(1, 'info', params), expected);
  });
});

describe('1.I common params', () => {
  onBoth('P-01 an optional field that is null is absent, a required one is missing', async (client) => {
    await answersEach(client, [
      [
        embed({ inputs: ['a'], kind: null, encoding: null, strict: null, 'x-trivec': null, _meta: null }),
        vectors(1, [97, 0, 0, 0]),
      ],
      [rerank({ topN: null, method: null, model: null }), ok(1, { order: [1, 2, 0] })],
      [embed({ inputs: null }), failure(1, -32602, { field: 'inputs' })],
      [request(1, 'rerank', { query: null, passages: [] }), failure(1, -32602, { field: 'query' })],
      [request(1, 'rerank', { query: 'q', passages: null }), failure(1, -32602, { field: 'passages' })],
    ]);
  });

  onBoth('P-02 -32602 names the path of the first bad element, wherever it stands', async (client) => {
    await answers(client, embed({ inputs: ['a', 1] }), failure(1, -32602, { field: 'inputs[1]' }));
    const bad = fc.constantFrom(1, null, true, [], ['a'], {}, { text: 'a' }, [15339, 1917]);
    const property = fc.asyncProperty(fc.nat(3), fc.nat(3), bad, async (length, place, element) => {
      const inputs: unknown[] = Array.from({ length: Math.max(length, place) + 1 }, () => 'a');
      inputs[place] = element;
      const { value } = await client.ask(embed({ inputs }));
      expect(value).toMatchObject(failure(1, -32602));
      expect(String(value.error.data.field)).toMatch(new RegExp(`^inputs\\[${place}\\](\\.type)?$`));
    });
    await fc.assert(property, { numRuns: 50, seed: 1 });
  });

  onBoth('P-03 a whole number is any number without a fraction, and nothing else', async (client) => {
    const withTopN = (raw: string) =>
      `{"jsonrpc":"2.0","id":1,"method":"rerank","params":{"query":"a","passages":["b","a","c"],"topN":${raw}}}`;
    await answersEach(client, [
      [withTopN('2.0'), ok(1, { order: [1, 0] })],
      [withTopN('1e0'), ok(1, { order: [1] })],
      [withTopN('1e1'), ok(1, { order: [1, 0, 2] })],
      ...['"2"', 'true', '1.5', '0', '-1', '[2]', '{}'].map(
        (raw) => [withTopN(raw), failure(1, -32602, { field: 'topN' })] as const,
      ),
    ]);
    const { value } = await client.ask(withTopN('9007199254740993'));
    expect(value.result?.order ?? value.error.code).toSatisfy(
      (got) => got === -32602 || (got as unknown[]).length === 3,
    );
  });

  onBoth('P-04 unknown keys of _meta are ignored, and a malformed known one never fails a call', async (client) => {
    const before = client.problems().length;
    for (const meta of [
      { progressToken: {}, deadlineMs: 'x', logLevel: 5 },
      { progressToken: [1], deadlineMs: {}, logLevel: 'loud' },
      { progressToken: true, traceId: { deep: [1] } },
    ]) {
      await answers(client, embed({ inputs: ['a'], _meta: meta }), vectors(1, [97, 0, 0, 0]));
    }
    expect(client.problems().length).toBe(before);
  });

  onBoth('P-05 a _meta of another type counts as absent', async (client) => {
    for (const meta of [5, 'x', [], true, [{ deadlineMs: 0 }]]) {
      await answers(client, embed({ inputs: ['a'], _meta: meta }), vectors(1, [97, 0, 0, 0]));
    }
  });

  onBoth('C-01 a text block is a text', async (client) => {
    await answersEach(client, [
      [embed({ inputs: [{ type: 'text', text: 'a' }] }), vectors(1, [97, 0, 0, 0])],
      [
        embed({ inputs: [{ type: 'text', text: 'a', mimeType: 'text/plain', zz: [1] }, 'b'] }),
        vectors(1, [97, 0, 0, 0], [98, 0, 0, 0]),
      ],
    ]);
  });

  onBoth('C-02 another modality is -32005 with the type, undefined ones too', async (client) => {
    for (const type of ['image', 'audio', 'blob', 'video', 'Text', '']) {
      await answers(
        client,
        embed({ inputs: [{ ...image, type }] }),
        failure(1, -32005, { option: type, field: 'inputs[0].type' }),
      );
    }
  });

  onBoth('C-03 a block without its text or its type, and no block at all, are -32602', async (client) => {
    await answersEach(client, [
      [embed({ inputs: [{ type: 'text' }] }), failure(1, -32602, { field: 'inputs[0].text' })],
      [embed({ inputs: [{ type: 'text', text: null }] }), failure(1, -32602, { field: 'inputs[0].text' })],
      [embed({ inputs: [{ type: 'text', text: 5 }] }), failure(1, -32602, { field: 'inputs[0].text' })],
      [embed({ inputs: [{ text: 'a' }] }), failure(1, -32602, { field: 'inputs[0].type' })],
      [embed({ inputs: [{ type: 5, text: 'a' }] }), failure(1, -32602, { field: 'inputs[0].type' })],
      [embed({ inputs: [null] }), failure(1, -32602, { field: 'inputs[0]' })],
      [embed({ inputs: [[]] }), failure(1, -32602, { field: 'inputs[0]' })],
    ]);
  });

  onBoth('C-04 no modality but text is advertised, so none has rules of its own', async (client) => {
    const { value } = await client.ask(request(1, 'info'));
    const { embed: dense, sparseEmbed, multiVector } = value.result.capabilities;
    expect([dense.modalities, sparseEmbed.modalities, multiVector.modalities]).toEqual([['text'], ['text'], ['text']]);
    const both = { type: 'image', data: 'AAAA', uri: 'http://127.0.0.1:1/x' };
    await answers(client, embed({ inputs: [both] }), failure(1, -32005, { option: 'image' }));
  });

  onBoth('C-05 an image by uri is -32005 by its type, at once', async (client) => {
    const byUri = { type: 'image', mimeType: 'image/png', uri: 'http://192.0.2.1/x' };
    const started = performance.now();
    await answers(client, embed({ inputs: [byUri] }), failure(1, -32005, { option: 'image', field: 'inputs[0].type' }));
    expect(performance.now() - started).toBeLessThan(1000);
  });

  onBoth('C-06 a bad element fails the whole call, and nothing runs', async (client, server) => {
    const before = server.engine.batches.length;
    await answers(client, embed({ inputs: ['a', image] }), failure(1, -32005, { field: 'inputs[1].type' }));
    await answers(client, rerank({ passages: ['a', 'b', null] }), failure(1, -32602, { field: 'passages[2]' }));
    expect(server.engine.batches.length).toBe(before);
    await client.tell(notification('embed', { inputs: ['a', 1] }));
    await answers(client, request(2, 'ping'), ok(2, exactly({})));
  });
});
