import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFakeServer, failure, never, rejectionOf, toBase64 } from './fake-server.ts';

const numbered = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1));
const firsts = (vectors: readonly ArrayLike<number>[]) => vectors.map((vector) => vector[0]);

describe('a list', () => {
  it('is sent in requests of the advertised size at most, and comes back in its order', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const { vectors, usage } = await client.embed(numbered(10));
    expect(firsts(vectors)).toEqual(numbered(10).map(Number));
    expect(server.calls().map(({ params }) => params['inputs'].length)).toEqual([4, 4, 2]);
    expect(usage).toMatchObject({ inputTokens: 10, requests: 3, retries: 0, truncated: [0, 4, 8], devices: ['cpu:0'] });
    expect(usage).toMatchObject({ queueMs: 3, computeMs: 6 });
  });

  it('keeps its order when later requests are answered first', async () => {
    const releases: (() => void)[] = [];
    const server = createFakeServer((request) =>
      request.method === 'info'
        ? undefined
        : new Promise((resolve) => {
            const vectors = request.params['inputs'].map((text: string) => [Number(text), 0, 0, 0]);
            releases.push(() => resolve({ result: { vectors } }));
          }),
    );
    const client = await server.connect();
    const call = client.embed(numbered(12));
    await server.clock.advance(0);
    for (const release of releases.reverse()) release();
    expect(firsts((await call).vectors)).toEqual(numbered(12).map(Number));
  });

  it('never has more requests under way than allowed, of all calls together', async () => {
    let running = 0;
    let most = 0;
    const server = createFakeServer((request) =>
      request.method === 'info'
        ? undefined
        : (async () => {
            most = Math.max(most, (running += 1));
            await new Promise((resolve) => server.clock.after(10, () => resolve(null)));
            running -= 1;
            return { result: { vectors: request.params['inputs'].map(() => [1, 0, 0, 0]) } };
          })(),
    );
    const client = await server.connect({ maxParallelRequests: 3 });
    const calls = Promise.all([client.embed(numbered(20)), client.embed(numbered(20))]);
    await server.clock.advance(1000);
    await calls;
    expect([most, server.calls().length]).toEqual([3, 10]);
  });

  it('is cut where the bytes of a request would be too many, escapes counted', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const text = '\u0001'.repeat(200);
    await client.embed([text, text, 'a']);
    expect(server.calls().map(({ params }) => params['inputs'].length)).toEqual([1, 2]);
  });

  it('with a text that fits into no request is refused before anything is sent', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const error = await rejectionOf(client.embed(['a', 'é'.repeat(1000)]));
    expect(error).toMatchObject({ code: -32013, wasSent: false, data: { field: 'inputs[1]' } });
    expect(server.calls()).toEqual([]);
  });

  it('of any length, with any number of requests at a time, gives Node no reason to warn of a leak', async () => {
    const warnings: Error[] = [];
    const keep = (warning: Error) => warnings.push(warning);
    process.on('warning', keep);
    try {
      const client = await createFakeServer().connect({ maxTextsPerRequest: 1, maxParallelRequests: 20 });
      const { signal } = new AbortController();
      await Promise.all(Array.from({ length: 12 }, () => client.embed(numbered(40), { signal })));
      await new Promise((resolve) => setImmediate(resolve));
    } finally {
      process.off('warning', keep);
    }
    expect(warnings).toEqual([]);
  });

  it('that is empty gives an empty result and sends nothing', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    expect(await client.embed([])).toMatchObject({ vectors: [], dimension: 4 });
    expect(await client.rerank('q', [])).toMatchObject({ scores: [], order: [], results: [] });
    expect(server.calls()).toEqual([]);
  });

  it('is halved where the server says that it is too much, down to the text that is', async () => {
    const server = createFakeServer(({ params }) =>
      (params['inputs'] ?? []).length > 1 ? failure(-32014, { retryable: true }) : undefined,
    );
    const client = await server.connect();
    const { vectors, usage } = await client.embed(numbered(4));
    expect(firsts(vectors)).toEqual([1, 2, 3, 4]);
    expect(usage.requests).toBe(4);
    expect(server.calls().map(({ params }) => params['inputs'].length)).toEqual([4, 2, 1, 1, 2, 1, 1]);
  });

  it('fails with the index that the text has in the whole list, and stops its other requests', async () => {
    const server = createFakeServer(({ method, params }) => {
      if (method === 'info') return undefined;
      return params['inputs'].includes('6')
        ? failure(-32602, { field: 'inputs[1]', retryable: false }, 'inputs[1]: is wrong')
        : never();
    });
    const client = await server.connect();
    const error = await rejectionOf(client.embed(numbered(12)));
    expect(error).toMatchObject({ code: -32602, message: 'inputs[5]: is wrong', data: { field: 'inputs[5]' } });
    expect(
      server
        .calls()
        .map(({ signal }) => signal.aborted)
        .filter(Boolean),
    ).toHaveLength(2);
  });

  it('reports progress that never goes back and ends at the whole', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const reported: number[] = [];
    await client.embed(numbered(10), { onProgress: ({ doneCount }) => reported.push(doneCount) });
    expect(reported).toEqual([4, 8, 10]);
  });

  it('fails with the error of a progress callback that throws', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const fault = new Error('of the caller');
    const throwing = () => {
      throw fault;
    };
    expect(await rejectionOf(client.embed(numbered(12), { onProgress: throwing }))).toBe(fault);
  });
});

describe('each kind of vector', () => {
  it('comes as terms and weights from sparseEmbed', async () => {
    const client = await createFakeServer().connect();
    const { sparse, identity } = await client.sparseEmbed(numbered(5), { kind: 'document' });
    expect(sparse).toHaveLength(5);
    expect(sparse[4]).toEqual({ indices: new Uint32Array([5]), values: new Float32Array([0.5]) });
    expect(identity).toBe('sparse@1');
  });

  it('comes as rows from multiVector', async () => {
    const client = await createFakeServer().connect();
    const { matrices, dimension } = await client.multiVector(['7']);
    expect(matrices).toEqual([[new Float32Array([7, 0]), new Float32Array([7, 0])]]);
    expect(dimension).toBe(2);
  });

  it('is asked for as base64 where offered, as json where integers are wanted or the caller says so', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    await client.embed(['1']);
    expect((await client.embed(['1'], { output: 'int8' })).vectors[0]).toBeInstanceOf(Int8Array);
    expect((await client.embed(['1'], { encoding: 'json' })).vectors[0]).toEqual(new Float32Array([1, 0, 0, 0]));
    expect(server.calls().map(({ params }) => params['encoding'])).toEqual(['f32-base64', 'json', 'json']);
  });

  it.each([
    ['a vector too few', { vectors: [] }],
    ['a vector that is too short', { vectors: [[1]] }],
    ['null in the place of a number', { vectors: [[1, 2, 3, null]] }],
    ['base64 of half a number', { vectors: ['AAA='] }],
    ['base64 of what is no number', { vectors: [toBase64([NaN, 0, 0, 0])] }],
    ['a number too large for binary32', { vectors: [[1e39, 0, 0, 0]] }],
    ['no list at all', {}],
  ])('rejects an answer with %s', async (_, result) => {
    const server = createFakeServer(({ method }) => (method === 'info' ? undefined : { result }));
    const client = await server.connect();
    expect(await rejectionOf(client.embed(['1']))).toMatchObject({ name: 'RcpError', errorName: 'internal' });
  });

  it.each([
    ['int8', [300, 0, 0, 0]],
    ['uint8', [-1, 0, 0, 0]],
    ['ubinary', [0.5]],
  ] as const)('rejects %s that would be other numbers in its array', async (output, vector) => {
    const server = createFakeServer(({ method }) =>
      method === 'info' ? undefined : { result: { vectors: [vector] } },
    );
    const client = await server.connect();
    expect(await rejectionOf(client.embed(['1'], { output }))).toMatchObject({ errorName: 'internal' });
  });

  it('rejects terms that are no places in a vocabulary', async () => {
    const server = createFakeServer(({ method }) =>
      method === 'info' ? undefined : { result: { sparse: [{ indices: [-1], values: [1] }] } },
    );
    const client = await server.connect();
    expect(await rejectionOf(client.sparseEmbed(['1']))).toMatchObject({ errorName: 'internal' });
  });

  it('is of the model that was asked for', async () => {
    const server = createFakeServer();
    const client = await server.connect();
    const { vectors, dimension, identity } = await client.embed(['1'], {
      model: 'nested',
      dimensions: 2,
      truncate: false,
    });
    expect([vectors[0]?.length, dimension, identity]).toEqual([2, 2, 'nested@1']);
    expect(server.calls()[0]?.params['x-trivec']).toEqual({ model: 'nested', dimensions: 2, truncate: false });
  });
});

describe('rerank', () => {
  it('over several requests orders as one request would', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 14 }),
        fc.integer({ min: 1, max: 14 }),
        async (scores, topN) => {
          const server = createFakeServer();
          const client = await server.connect();
          const result = await client.rerank('q', scores.map(String), { topN });
          const whole = scores.map((_, index) => index).sort((a, b) => scores[b]! - scores[a]! || a - b);
          expect(result.scores).toEqual(scores);
          expect(result.order).toEqual(whole.slice(0, topN));
          expect(result.results.map(({ index }) => index)).toEqual(result.order);
          expect(result.results.every(({ index, score }) => score === scores[index])).toBe(true);
          expect(server.calls().every(({ params }) => params['passages'].length <= 3)).toBe(true);
        },
      ),
      { numRuns: 50 },
    );
  });

  it.each([[[0, 5, 1]], [[0, 0, 1]], [[0, 1]], [[0, -1, 1]], [[0, 0.5, 1]]])(
    'rejects %j as the order of three passages',
    async (order) => {
      const server = createFakeServer(({ method }) =>
        method === 'info' ? undefined : { result: { scores: [3, 2, 1], order } },
      );
      const client = await server.connect();
      expect(await rejectionOf(client.rerank('q', ['a', 'b', 'c']))).toMatchObject({ errorName: 'internal' });
    },
  );

  it('makes an order of the scores where the server sends none', async () => {
    const server = createFakeServer(({ method }) =>
      method === 'rerank' ? { result: { scores: [1, 3, 3] } } : undefined,
    );
    const client = await server.connect();
    expect((await client.rerank('q', ['a', 'b', 'c'])).order).toEqual([1, 2, 0]);
  });
});
