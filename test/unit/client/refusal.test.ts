import { describe, expect, it } from 'vitest';
import { openClient, type Client } from '../../../src/client/client.ts';
import { connect } from '../../../src/client/index.ts';
import { capabilities, createFakeServer, fakeInfo, rejectionOf, type Loose } from './fake-server.ts';

const serving = (info: object) => createFakeServer(({ method }) => (method === 'info' ? { result: info } : undefined));
const without = (name: keyof typeof capabilities) => ({
  ...fakeInfo,
  capabilities: { ...capabilities, [name]: undefined },
});

describe('what the server does not advertise is refused before anything is sent', () => {
  it.each([
    ['embed', (client: Client) => client.embed(['a']), 'embed'],
    ['sparseEmbed', (client: Client) => client.sparseEmbed(['a']), 'embed/sparse'],
    ['multiVector', (client: Client) => client.multiVector(['a']), 'embed/multi'],
    ['rerank', (client: Client) => client.rerank('q', ['a']), 'rerank'],
  ] as const)('the method of %s', async (capability, call, method) => {
    const server = serving(without(capability));
    const error = await rejectionOf(call(await server.connect()));
    expect(error).toMatchObject({ code: -32003, wasSent: false, retryable: false, data: { option: method } });
    expect(error.message).toContain('it offers');
    expect(server.calls()).toEqual([]);
  });

  const anything = (value: unknown) => value as Loose;
  it.each([
    ['an encoding', (client: Client) => client.embed(['a'], anything({ encoding: 'f16-base64' })), 'encoding'],
    [
      'integers as base64',
      (client: Client) => client.embed(['a'], { output: 'int8', encoding: 'f32-base64' }),
      'encoding',
    ],
    ['a form of a vector', (client: Client) => client.embed(['a'], anything({ output: 'int4' })), 'x-trivec.output'],
    ['a model', (client: Client) => client.embed(['a'], { model: 'other' }), 'x-trivec.model'],
    ['a priority', (client: Client) => client.embed(['a'], anything({ priority: 'high' })), 'x-trivec.priority'],
    [
      'fewer dimensions of a model that is not made for it',
      (client: Client) => client.embed(['a'], { dimensions: 2 }),
      'x-trivec.dimensions',
    ],
    ['a method of rerank', (client: Client) => client.rerank('q', ['a'], { method: 'llm' }), 'method'],
    ['a model of rerank', (client: Client) => client.rerank('q', ['a'], { model: 'other' }), 'model'],
    [
      'a model of another method of rerank',
      (client: Client) => client.rerank('q', ['a'], { method: 'colbert', model: 'pairs' }),
      'model',
    ],
  ])('%s', async (_, call, field) => {
    const server = createFakeServer();
    const error = await rejectionOf(call(await server.connect()));
    expect(error).toMatchObject({ code: -32005, errorName: 'unsupportedOption', wasSent: false, data: { field } });
    expect(error.data.supported).toBeInstanceOf(Array);
    expect(server.calls()).toEqual([]);
  });

  it.each([
    ['a text in the place of a list', (client: Client) => client.embed(anything('text')), 'inputs'],
    ['an element that is no text', (client: Client) => client.embed(anything(['a', 1])), 'inputs[1]'],
    ['a kind of text', (client: Client) => client.embed(['a'], anything({ kind: 'passage' })), 'kind'],
    [
      'more dimensions than there are',
      (client: Client) => client.embed(['a'], { model: 'nested', dimensions: 9 }),
      'x-trivec.dimensions',
    ],
    ['no results', (client: Client) => client.rerank('q', ['a'], { topN: 0 }), 'topN'],
  ])('%s', async (_, call, field) => {
    const server = createFakeServer();
    const error = await rejectionOf(call(await server.connect()));
    expect(error).toMatchObject({ code: -32602, wasSent: false, data: { field } });
    expect(server.calls()).toEqual([]);
  });

  it('an option that a server of another make does not list', async () => {
    const server = serving({ ...fakeInfo, 'x-trivec': undefined });
    const client = await server.connect();
    const error = await rejectionOf(client.embed(['1'], { truncate: false }));
    expect(error).toMatchObject({ code: -32005, data: { option: 'truncate' } });
    expect((await client.embed(['1'])).vectors).toHaveLength(1);
  });

  it.each([
    ['maxParallelRequests', [NaN, 0, 1.5, '4', null]],
    ['maxTextsPerRequest', [1.5, 0, -1, '8', null]],
    ['maxAnswerBytes', [NaN, 0, -1, '1000000', null]],
    ['answerTimeoutMs', [NaN, 0, -1, '1000', null]],
    ['retry.maxAttempts', [NaN, 0, 2.5, '3', null]],
    ['retry.maxWaitMs', [NaN, -1, '1000', null]],
  ] as const)('a bound that is none, with its name and its value: %s', async (field, values) => {
    for (const value of values) {
      const server = createFakeServer();
      const [outer = '', inner] = field.split('.');
      const error = await rejectionOf(server.connect({ [outer]: inner === undefined ? value : { [inner]: value } }));
      expect(error).toMatchObject({ errorName: 'invalidParams', wasSent: false, data: { field } });
      expect(error.message).toContain(`${field}: must be `);
      expect(error.message).toContain(`, not ${typeof value === 'string' ? JSON.stringify(value) : String(value)}`);
      expect(server.seen).toEqual([]);
    }
  });

  it('a bound that is none before a process is started', async () => {
    const target = { command: '/nowhere/at/all' };
    const error = await rejectionOf(connect(target, { maxAnswerBytes: NaN }));
    expect(error).toMatchObject({ errorName: 'invalidParams', data: { field: 'maxAnswerBytes' } });
  });

  it('every call once the client is closed', async () => {
    const client = await createFakeServer().connect();
    await client.close();
    await client.close();
    expect(await rejectionOf(client.embed(['a']))).toMatchObject({ errorName: 'unavailable', retryable: false });
  });
});

describe('the identity of a result', () => {
  it('of rerank is that of the first model of the method that was asked for', async () => {
    const client = await createFakeServer().connect();
    const identities = [
      {},
      { method: 'colbert' },
      { method: 'cross-encoder' },
      { model: 'rows' },
      { method: 'colbert', model: 'rows' },
    ];
    const told = await Promise.all(
      identities.map(async (options) => (await client.rerank('q', ['1'], options)).identity),
    );
    expect(told).toEqual(['pairs@1', 'rows@1', 'pairs@1', 'rows@1', 'rows@1']);
  });

  it('is that of the capability for its first model only, on a server that lists none', async () => {
    const client = await serving({ ...fakeInfo, 'x-trivec': undefined }).connect();
    const asked = [{}, { method: 'cross-encoder', model: 'pairs' }, { method: 'colbert' }, { model: 'rows' }];
    const told = await Promise.all(asked.map(async (options) => (await client.rerank('q', ['1'], options)).identity));
    expect(told).toEqual(['pairs@1', 'pairs@1', undefined, undefined]);
  });
});

describe('the identity of an index', () => {
  it('that is not the model served is a warning for each difference, and a value', async () => {
    const warnings: string[] = [];
    const client = await createFakeServer().connect({
      onWarning: (message) => warnings.push(message),
      expectIdentity: { embed: 'old@1', rerank: 'pairs@1' },
    });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('old@1');
    expect(warnings[0]).toContain('plain@1');
    expect(client.checkIdentity({ embed: 'plain@1' })).toEqual([]);
    expect(client.checkIdentity({ embed: 'old@1', sparseEmbed: 'sparse@1' })).toMatchObject([
      { capability: 'embed', expected: 'old@1', actual: 'plain@1' },
    ]);
  });

  it('of another model of the same server is told with the option that asks for it', async () => {
    const client = await createFakeServer().connect({ onWarning: () => undefined });
    expect(client.checkIdentity({ embed: 'nested@1' })[0]?.message).toContain('model: "nested"');
  });

  it('of what the server does not offer is a difference', async () => {
    const client = await serving(without('embed')).connect({ onWarning: () => undefined });
    expect(client.checkIdentity({ embed: 'plain@1' })).toMatchObject([{ actual: undefined }]);
  });
});

describe('close', () => {
  it('ends the server once, and everyone who closes waits for that end', async () => {
    let end: () => void = () => undefined;
    let closes = 0;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const answer = () => Promise.resolve({ ...fakeInfo });
    const close = () => {
      closes += 1;
      return ended;
    };
    const client = await openClient({ address: 'own', open: answer, send: answer, close }, {});
    const settled: string[] = [];
    const both = ['first', 'second'].map((name) => client.close().then(() => settled.push(name)));
    await Promise.resolve();
    expect(settled).toEqual([]);
    end();
    await Promise.all(both);
    expect(closes).toBe(1);
  });
});
