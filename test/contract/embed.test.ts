import { describe, expect } from 'vitest';
import { embedding, exactly, failure, ok, request, vectors } from '../support/harness/frames.ts';
import { answers, answersEach, onBoth } from '../support/harness/rows.ts';

const call = (params: unknown) => request(1, 'embed', params);
const a = [97, 0, 0, 0];
const b = [98, 0, 0, 0];
const blobOfA = 'AADCQgAAAAAAAAAAAAAAAA==';

describe('1.J embed', () => {
  onBoth('EM-01 one vector for each input, in input order', async (client) => {
    await answersEach(client, [
      [call({ inputs: ['a', 'b'] }), vectors(1, a, b)],
      [call({ inputs: ['b', 'a', 'b', ''] }), vectors(1, b, a, b, [0, 0, 0, 0])],
    ]);
  });

  onBoth('EM-02 texts is a full synonym', (client) => answers(client, call({ texts: ['a'] }), vectors(1, a)));

  onBoth('EM-03 of both names inputs wins unless it is null', async (client) => {
    await answersEach(client, [
      [call({ inputs: ['a'], texts: ['b', 'b'] }), vectors(1, a)],
      [call({ inputs: null, texts: ['a'] }), vectors(1, a)],
      [call({ inputs: [], texts: ['a'] }), ok(1, { vectors: exactly([]) })],
      [call({ inputs: 5, texts: ['a'] }), failure(1, -32602, { field: 'inputs' })],
      [call({ inputs: null, texts: [5] }), failure(1, -32602, { field: 'texts[0]' })],
    ]);
  });

  onBoth('EM-04 without any it is -32602, field inputs', async (client) => {
    for (const params of [{}, null, { inputs: null, texts: null }, { input: ['a'] }]) {
      await answers(client, call(params), failure(1, -32602, { field: 'inputs' }));
    }
  });

  onBoth('EM-05 what is no list is -32602, never embedded letter by letter', async (client) => {
    for (const inputs of ['abc', { 0: 'a' }, 5, true, { type: 'text', text: 'a' }]) {
      await answers(client, call({ inputs }), failure(1, -32602, { field: 'inputs' }));
    }
  });

  onBoth('EM-06 an empty list gives an empty result without a run', async (client, server) => {
    const before = server.engine.batches.length;
    await answers(
      client,
      call({ inputs: [] }),
      ok(1, { vectors: exactly([]), usage: { inputTokens: 0, truncated: [] } }),
    );
    expect(server.engine.batches.length).toBe(before);
  });

  onBoth('EM-07 an empty text has a finite vector and keeps its place', async (client) => {
    const zero = [0, 0, 0, 0];
    await answersEach(client, [
      [call({ inputs: [''] }), vectors(1, zero)],
      [call({ inputs: ['a', '', 'b'] }), vectors(1, a, zero, b)],
      [call({ inputs: ['a', ''] }), vectors(1, a, zero)],
      [call({ inputs: [' '] }), vectors(1, [32, 0, 0, 0])],
    ]);
  });

  onBoth('EM-08 kind is query or document', async (client) => {
    for (const kind of ['query', 'document']) await answers(client, call({ inputs: ['a'], kind }), vectors(1, a));
    for (const kind of ['passage', 'Query', '', 5, [], {}, false]) {
      await answers(client, call({ inputs: ['a'], kind }), failure(1, -32602, { field: 'kind' }));
    }
  });

  onBoth('EM-09 more inputs than batchLimit are refused, never split', async (client, server) => {
    const before = server.engine.batches.length;
    const tooMany = { field: 'inputs', limit: 4, received: 5, retryable: false };
    await answers(client, call({ inputs: Array(5).fill('a') }), failure(1, -32602, tooMany));
    await answers(client, call({ texts: Array(6).fill('a') }), failure(1, -32602, { field: 'texts', received: 6 }));
    expect(server.engine.batches.length).toBe(before);
    await answers(client, call({ inputs: Array(4).fill('a') }), vectors(1, a, a, a, a));
  });

  onBoth('EM-10 names of the client never reach shared objects', async (client) => {
    const frame =
      '{"jsonrpc":"2.0","id":1,"method":"embed","params":{"inputs":["a"],"__proto__":{"x":1},"constructor":{"prototype":{"x":1}}}}';
    await answers(client, frame, vectors(1, a));
    await answers(client, '{"__proto__":{"method":"ping","id":1},"jsonrpc":"2.0"}', failure(null, -32600));
    await answers(
      client,
      '{"jsonrpc":"2.0","id":1,"method":"embed","params":{"__proto__":{"inputs":["a"]}}}',
      failure(1, -32602, { field: 'inputs' }),
    );
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe('1.J encodings', () => {
  onBoth('EN-01 without an encoding vectors are numbers', (client) =>
    answers(client, embedding(1, 'a'), vectors(1, a)),
  );

  onBoth('EN-02 json is numbers, and said', (client) =>
    answers(client, call({ inputs: ['a'], encoding: 'json' }), ok(1, { vectors: [a], encoding: 'json' })),
  );

  onBoth('EN-03 f32-base64 is one padded string of little-endian floats for each vector', (client) =>
    answers(
      client,
      call({ inputs: ['a', ''], encoding: 'f32-base64' }),
      ok(1, { vectors: [blobOfA, 'AAAAAAAAAAAAAAAAAAAAAA=='], encoding: 'f32-base64', dimension: 4 }),
    ),
  );

  onBoth('EN-04 each blob has exactly four bytes for each dimension', async (client) => {
    const { value } = await client.ask(call({ inputs: ['a', 'bc', 'é😀', ''], encoding: 'f32-base64' }));
    const blobs = (value.result.vectors as string[]).map((blob) => Buffer.from(blob, 'base64'));
    expect(blobs.map((blob) => blob.length)).toEqual([16, 16, 16, 16]);
    expect(blobs.map((blob) => blob.readFloatLE(4))).toEqual([0, 99, 169, 0]);
  });

  onBoth('EN-05 an empty list still says the dimension', (client) =>
    answers(
      client,
      call({ inputs: [], encoding: 'f32-base64' }),
      ok(1, { vectors: exactly([]), encoding: 'f32-base64', dimension: 4 }),
    ),
  );

  onBoth('EN-06 an encoding that is not advertised is -32005, one that is no text -32602', async (client) => {
    for (const encoding of ['f16-base64', 'F32-BASE64', 'base64', '', 'JSON']) {
      await answers(
        client,
        call({ inputs: ['a'], encoding }),
        failure(1, -32005, { option: encoding, field: 'encoding', supported: ['json', 'f32-base64'] }),
      );
    }
    for (const encoding of [5, [], {}, true])
      await answers(client, call({ inputs: ['a'], encoding }), failure(1, -32602, { field: 'encoding' }));
  });

  onBoth('EN-07 strict: false allows json instead, and the result says so', async (client) => {
    const expected = ok(1, { vectors: [a], encoding: 'json', usage: { notes: [expect.any(String)] } });
    await answers(client, call({ inputs: ['a'], encoding: 'x', strict: false }), expected);
    await answers(client, call({ inputs: ['a'], encoding: 'x', strict: true }), failure(1, -32005));
    await answers(
      client,
      call({ inputs: ['a'], encoding: 'x', strict: 'no' }),
      failure(1, -32602, { field: 'strict' }),
    );
  });

  onBoth('EN-08 binary carries no value that is not a number', (client) =>
    answers(client, call({ inputs: ['nan'], encoding: 'f32-base64' }), failure(1, -32603, { field: 'inputs[0]' })),
  );
});

describe('1.J embed/sparse', () => {
  const sparse = (params: object) => request(1, 'embed/sparse', params);
  const ofA = { indices: [97], values: [1] };

  onBoth('SP-01 terms and weights of equal length for each input', async (client) => {
    await answersEach(client, [
      [sparse({ texts: ['a'] }), ok(1, { sparse: [ofA] })],
      [
        sparse({ texts: ['abba', '', 'a'] }),
        ok(1, { sparse: [{ indices: [97, 98], values: [2, 2] }, { indices: exactly([]), values: exactly([]) }, ofA] }),
      ],
      [sparse({ texts: [] }), ok(1, { sparse: exactly([]) })],
    ]);
  });

  onBoth('SP-02 inputs is accepted as well, and errors name what was sent', async (client) => {
    await answersEach(client, [
      [sparse({ inputs: ['a'] }), ok(1, { sparse: [ofA] })],
      [sparse({ inputs: null, texts: ['a'] }), ok(1, { sparse: [ofA] })],
      [sparse({ inputs: [], texts: ['a'] }), ok(1, { sparse: exactly([]) })],
      [sparse({}), failure(1, -32602, { field: 'texts' })],
      [sparse({ inputs: [1] }), failure(1, -32602, { field: 'inputs[0]' })],
      [sparse({ texts: [1] }), failure(1, -32602, { field: 'texts[0]' })],
      [sparse({ texts: 'a' }), failure(1, -32602, { field: 'texts' })],
    ]);
  });

  onBoth('SP-03 encoding has no meaning here', async (client) => {
    for (const encoding of ['f32-base64', 'x', 5])
      await answers(client, sparse({ texts: ['a'], encoding }), ok(1, { sparse: [ofA] }));
  });

  onBoth('SP-04 kind, blocks and limits are those of embed', async (client) => {
    await answersEach(client, [
      [sparse({ texts: [{ type: 'text', text: 'a' }], kind: 'query' }), ok(1, { sparse: [ofA] })],
      [sparse({ texts: ['a'], kind: 'x' }), failure(1, -32602, { field: 'kind' })],
      [
        sparse({ texts: [{ type: 'image', data: 'A', mimeType: 'image/png' }] }),
        failure(1, -32005, { option: 'image' }),
      ],
      [sparse({ inputs: Array(5).fill('a') }), failure(1, -32602, { field: 'inputs', limit: 4, received: 5 })],
    ]);
  });
});

describe('1.J embed/multi', () => {
  const multi = (params: object) => request(1, 'embed/multi', params);

  onBoth('MV-01 one matrix for each input, and always the dimension', async (client) => {
    await answersEach(client, [
      [multi({ inputs: ['ab'] }), ok(1, { matrices: [[a, b]], dimension: 4 })],
      [multi({ inputs: ['ab', 'b'] }), ok(1, { matrices: [[a, b], [b]], dimension: 4 })],
      [multi({ inputs: [] }), ok(1, { matrices: exactly([]), dimension: 4 })],
    ]);
  });

  onBoth('MV-02 texts is accepted as well', async (client) => {
    await answers(client, multi({ texts: ['a'] }), ok(1, { matrices: [[a]], dimension: 4 }));
    await answers(client, multi({}), failure(1, -32602, { field: 'inputs' }));
  });

  onBoth('MV-03 f32-base64 is one blob for each row', async (client) => {
    const expected = { matrices: [[blobOfA, 'AADEQgAAAAAAAAAAAAAAAA==']], dimension: 4, encoding: 'f32-base64' };
    await answers(client, multi({ inputs: ['ab'], encoding: 'f32-base64' }), ok(1, expected));
    await answers(
      client,
      multi({ inputs: ['ab'], encoding: 'f16-base64' }),
      failure(1, -32005, { option: 'f16-base64' }),
    );
    await answers(
      client,
      multi({ inputs: ['a'], encoding: 'x', strict: false }),
      ok(1, { matrices: [[a]], encoding: 'json' }),
    );
  });

  onBoth('MV-04 the similarity is advertised', (client) =>
    answers(
      client,
      request(1, 'info'),
      ok(1, { capabilities: { multiVector: { similarity: 'dot', dimension: 4, identity: 'fix-m@1' } } }),
    ),
  );

  onBoth('MV-05 an empty text still has a matrix, of one row at least', async (client) => {
    const { value } = await client.ask(multi({ inputs: ['', 'a'] }));
    expect(value.result.matrices.map((matrix: unknown[]) => matrix.length)).toEqual([1, 1]);
  });
});
