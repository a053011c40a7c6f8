import { describe, expect } from 'vitest';
import { createService } from '../../src/server.ts';
import type { RcpClient } from '../support/harness/client.ts';
import { embedding, failure, handshake, ok, request } from '../support/harness/frames.ts';
import { openStdioClient } from '../support/harness/stdio-client.ts';
import { answers, onBoth, onHttp, onStdio } from '../support/harness/rows.ts';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into it freely
const capabilitiesOf = async (client: RcpClient): Promise<Record<string, any>> =>
  (await client.ask(request(1, 'info'))).value.result.capabilities;

describe('1.P capabilities and conformance', () => {
  onBoth('CP-01 each capability is an object, spelt as the specification does', async (client) => {
    const capabilities = await capabilitiesOf(client);
    for (const value of Object.values(capabilities)) {
      expect(value).toEqual(expect.any(Object));
      expect(Object.values(value as object)).not.toContain(null);
    }
    expect(Object.keys(capabilities).sort()).toEqual([
      'embed',
      'log',
      'multiVector',
      'rerank',
      'sparseEmbed',
      'streaming',
    ]);
    expect(capabilities['embed']).toHaveProperty('dimension', 4);
    expect(JSON.stringify(capabilities)).not.toContain('dimensions');
  });

  onStdio('CP-01 a method without a model has no capability and is -32003', async (client, server) => {
    const engine = {
      ...server.engine,
      tasks: { ...server.engine.tasks, sparseEmbed: [], multiVector: [], rerankers: [] },
    };
    const parts = { ...server.parts, engine };
    const service = createService(parts);
    await service.devices.start();
    const other = openStdioClient({ ...server, service, parts });
    await answers(other, handshake(), ok(1));
    expect(Object.keys(await capabilitiesOf(other)).sort()).toEqual(['embed', 'log', 'streaming']);
    for (const method of ['embed/sparse', 'embed/multi', 'rerank'])
      await answers(other, request(2, method, {}), failure(2, -32003));
    await answers(other, embedding(3, 'a'), ok(3));
    await other.close();
    expect(other.problems()).toEqual([]);
    await service.devices.stop();
    await answers(client, request(4, 'rerank', { query: 'a', passages: ['a'] }), ok(4));
  });

  onBoth('CP-02 embed or rerank is among them', async (client) => {
    const names = Object.keys(await capabilitiesOf(client));
    expect(names.includes('embed') || names.includes('rerank')).toBe(true);
  });

  onBoth('CP-03 limits, identity and forms are advertised', async (client) => {
    expect(await capabilitiesOf(client)).toMatchObject({
      embed: {
        dimension: 4,
        identity: 'fix@1',
        batchLimit: 4,
        normalized: false,
        modalities: ['text'],
        encodings: ['json', 'f32-base64'],
      },
      sparseEmbed: { identity: 'fix-s@1', vocabulary: 256 },
      multiVector: {
        dimension: 4,
        identity: 'fix-m@1',
        similarity: 'dot',
        modalities: ['text'],
        encodings: ['json', 'f32-base64'],
      },
      rerank: { methods: ['cross-encoder'], maxCandidates: 4, models: ['fix-r@1'] },
      streaming: {},
      log: { levels: ['debug', 'info', 'notice', 'warning', 'error'] },
    });
  });

  onStdio(
    'CP-04 the probes of the conformance suite are answered as it demands',
    async (client) => {
      const retrieve = request(1, 'retrieve', { query: 'x', k: 1 });
      const client1 = { protocolVersion: 0, client: { name: 'conf', version: '1' } };
      await answers(client, request(0, 'info', {}), ok(0, { server: { name: 'fixture' } }));
      await answers(client, request(100, 'ping', { nonce: 777 }), ok(100, { nonce: 777 }));
      await answers(client, retrieve, failure(1, -32001));
      await answers(client, request(200, 'initialize', client1), failure(200, -32002));
      await answers(client, retrieve, failure(1, -32001));
      await answers(client, handshake(2), ok(2, { protocolVersion: 1, _meta: { conformance: 'L0' } }));
      await answers(client, handshake('reinit'), failure('reinit', -32600));
      await answers(client, request(3, 'does/not/exist', {}), failure(3, -32004));
      await answers(client, request(4, 'index/add', { documents: [] }), failure(4, -32003));
      await answers(client, request('str-id-1', 'info', {}), ok('str-id-1'));
      const documents = ['a b c', 'd e f'];
      await answers(
        client,
        request(10, 'rerank', { query: 'test', documents, topN: 2 }),
        ok(10, { results: [{}, {}] }),
      );
      await answers(client, request(99, 'shutdown', {}), ok(99));
      await client.finished;
    },
    { isFresh: true },
  );

  onHttp('CP-05 members beyond the specification are added, none is replaced', async (client) => {
    const { value } = await client.ask(request(1, 'rerank', { query: 'a', passages: ['a'] }));
    expect(Object.keys(value.result as object)).toEqual(
      expect.arrayContaining(['scores', 'order', 'results', 'usage']),
    );
    const embedded = await client.ask(embedding(1, 'a'));
    expect(Object.keys(embedded.value.result as object)).toEqual(
      expect.arrayContaining(['vectors', 'dimension', 'usage']),
    );
    const info = await client.ask(request(1, 'info'));
    expect(Object.keys(info.value.result as object).sort()).toEqual([
      '_meta',
      'capabilities',
      'protocolVersion',
      'server',
      'x-trivec',
    ]);
  });
});
