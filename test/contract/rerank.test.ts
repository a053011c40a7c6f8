import { describe, expect } from 'vitest';
import { exactly, failure, ok, request } from '../support/harness/frames.ts';
import { answers, answersEach, onBoth } from '../support/harness/rows.ts';

const call = (params: object) => request(1, 'rerank', params);
const abc = { query: 'a b', passages: ['c', 'a', 'a b'] };

describe('1.K rerank', () => {
  onBoth('RR-01 scores stand at the place of their passage, higher is better', (client) =>
    answers(client, call(abc), ok(1, { scores: [0, 1, 2] })),
  );

  onBoth('RR-02 order is best first, ties by ascending index', async (client) => {
    await answersEach(client, [
      [call(abc), ok(1, { order: [2, 1, 0] })],
      [call({ query: 'q', passages: ['x', 'y', 'z'] }), ok(1, { order: [0, 1, 2] })],
      [call({ query: 'a', passages: ['x', 'a', 'y', 'a'] }), ok(1, { order: [1, 3, 0, 2] })],
    ]);
  });

  onBoth('RR-03 topN shortens order and results, never scores', (client) =>
    answers(
      client,
      call({ ...abc, topN: 2 }),
      ok(1, { scores: [0, 1, 2], order: [2, 1], results: [{ index: 2 }, { index: 1 }] }),
    ),
  );

  onBoth('RR-04 a topN above the number of passages means all', (client) =>
    answers(client, call({ ...abc, topN: 99 }), ok(1, { order: [2, 1, 0] })),
  );

  onBoth('RR-05 a topN that is no whole number of at least 1 is -32602', async (client) => {
    for (const topN of [0, -1, 1.5, '2', true, [], {}]) {
      await answers(client, call({ ...abc, topN }), failure(1, -32602, { field: 'topN' }));
    }
  });

  onBoth('RR-06 documents is a synonym where passages is absent or null', async (client) => {
    await answersEach(client, [
      [call({ query: 'test', documents: ['a b c', 'd e f'], topN: 2 }), ok(1, { scores: [0, 0] })],
      [call({ query: 'a', passages: null, documents: ['a'] }), ok(1, { scores: [1] })],
      [call({ query: 'a', passages: ['a'], documents: ['b', 'b'] }), ok(1, { scores: [1] })],
      [call({ query: 'a', documents: [1] }), failure(1, -32602, { field: 'documents[0]' })],
    ]);
  });

  onBoth('RR-07 results say the same best first', async (client) => {
    const expected = {
      scores: [0, 0],
      order: [0, 1],
      results: [
        { index: 0, score: 0 },
        { index: 1, score: 0 },
      ],
    };
    await answers(client, call({ query: 'test', documents: ['a b c', 'd e f'], topN: 2 }), ok(1, expected));
    await answers(
      client,
      call(abc),
      ok(1, {
        results: [
          { index: 2, score: 2 },
          { index: 1, score: 1 },
          { index: 0, score: 0 },
        ],
      }),
    );
  });

  onBoth('RR-08 a method that is not advertised is -32005', async (client) => {
    for (const method of ['llm', 'bm25', 'colbert', '', 'Cross-Encoder']) {
      await answers(client, call({ ...abc, method }), failure(1, -32005, { option: method, field: 'method' }));
    }
    await answers(client, call({ ...abc, method: 'cross-encoder' }), ok(1, { scores: [0, 1, 2] }));
    await answers(client, call({ ...abc, method: 5 }), failure(1, -32602, { field: 'method' }));
  });

  onBoth('RR-09 a model that is not advertised is -32005', async (client) => {
    await answersEach(client, [
      [call({ ...abc, model: 'zzz' }), failure(1, -32005, { option: 'zzz', field: 'model' })],
      [call({ ...abc, model: '../../etc/passwd' }), failure(1, -32005, { field: 'model' })],
      [call({ ...abc, model: 5 }), failure(1, -32602, { field: 'model' })],
      [call({ ...abc, model: 'fix-r@1' }), ok(1)],
    ]);
  });

  onBoth('RR-10 a query or passages that are missing or no texts are -32602', async (client) => {
    await answersEach(client, [
      [call({}), failure(1, -32602, { field: 'query' })],
      [call({ query: 'q' }), failure(1, -32602, { field: 'passages' })],
      [call({ query: 1, passages: [] }), failure(1, -32602, { field: 'query' })],
      [call({ query: 'q', passages: 'x' }), failure(1, -32602, { field: 'passages' })],
      [call({ query: 'q', passages: { 0: 'x' } }), failure(1, -32602, { field: 'passages' })],
      [call({ query: 'q', passages: ['a', null] }), failure(1, -32602, { field: 'passages[1]' })],
      [call({ query: 'q', passages: [['a']] }), failure(1, -32602, { field: 'passages[0]' })],
    ]);
  });

  onBoth('RR-11 no passages give empty lists without a run', async (client, server) => {
    const before = server.engine.batches.length;
    await answers(
      client,
      call({ query: 'q', passages: [] }),
      ok(1, { scores: exactly([]), order: exactly([]), results: exactly([]) }),
    );
    expect(server.engine.batches.length).toBe(before);
  });

  onBoth('RR-12 text blocks are texts, in the query also a list of them', async (client) => {
    const block = (text: string) => ({ type: 'text', text });
    await answersEach(client, [
      [call({ query: block('a'), passages: [block('a')] }), ok(1, { scores: [1] })],
      [call({ query: [block('a'), block('b')], passages: ['a', 'b', 'b a'] }), ok(1, { scores: [1, 1, 2] })],
      [
        call({ query: [block('a'), { type: 'image' }], passages: ['a'] }),
        failure(1, -32005, { option: 'image', field: 'query[1].type' }),
      ],
      [
        call({ query: 'a', passages: [{ type: 'audio' }] }),
        failure(1, -32005, { option: 'audio', field: 'passages[0].type' }),
      ],
    ]);
  });

  onBoth('RR-13 more passages than maxCandidates are refused', async (client) => {
    const five = Array(5).fill('a');
    await answers(
      client,
      call({ query: 'a', passages: five }),
      failure(1, -32602, { field: 'passages', limit: 4, received: 5, retryable: false }),
    );
    await answers(
      client,
      call({ query: 'a', documents: five }),
      failure(1, -32602, { field: 'documents', limit: 4, received: 5 }),
    );
    await answers(client, call({ query: 'a', passages: five.slice(1) }), ok(1, { scores: [1, 1, 1, 1] }));
  });

  onBoth('RR-14 usage counts candidates, passages scored and milliseconds', async (client) => {
    const { value } = await client.ask(call({ ...abc, topN: 1 }));
    const { candidates, reranked, latencyMs } = value.result.usage;
    expect([candidates, reranked, Number.isInteger(latencyMs)]).toEqual([3, 3, true]);
  });

  onBoth('RR-15 a score that is not a number fails the call with its field', async (client) => {
    await answers(client, call({ query: 'a', passages: ['a', 'nan'] }), failure(1, -32603, { field: 'passages[1]' }));
    await answers(client, call({ query: 'a', documents: ['nan', 'a'] }), failure(1, -32603, { field: 'documents[0]' }));
    await answers(client, call(abc), ok(1, { scores: [0, 1, 2] }));
  });

  onBoth('RR-16 strict: false allows the default method instead, and the result says so', (client) =>
    answers(
      client,
      call({ ...abc, method: 'llm', strict: false }),
      ok(1, { scores: [0, 1, 2], usage: { notes: [expect.any(String)] } }),
    ),
  );
});
