import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { RefusedText } from '../../src/bulk/source/source.ts';
import { createBulkServers, never, vectorOf, wish } from '../support/bulk-servers.ts';

const servers = createBulkServers({ patienceMs: 20_000, answerTimeoutMs: 60_000, silenceMs: 1_000 });
const { open, inFrontOf } = servers;
afterEach(() => servers.closeAll());
const start = async (...given: Parameters<typeof servers.start>) => (await servers.start(...given)).url;

const dense = (texts: readonly string[]) => ({ kind: 'dense', vectors: texts.map(vectorOf) });
const numbered = (count: number) => Array.from({ length: count }, (_, text) => `t${text}`);

const withoutIdentity = (text: string) => text.replace(/,"x-trivec":\{"identity":"[^"]*"\}/u, '');

describe('a server that changes its model', () => {
  it('is left out before one vector of the other model is taken, though no call has failed', async () => {
    let model = 'fix@1';
    const { url } = await inFrontOf(await start(), (_, text) => text.replaceAll('fix@1', model));
    const source = await open([url]);
    expect((await source.embed(['ab'], never)).vectors).toEqual(dense(['ab']));
    model = 'fix@2';
    await expect(source.embed(['cd'], never)).rejects.toThrow('no server is left that serves the model of this run');
    expect(source.notes.join('\n')).toContain('answers with another model now, fix@2,');
  });

  it('is known by what it says of itself, where its answers do not name their model', async () => {
    let model = 'fix@1';
    const { url } = await inFrontOf(await start(), (_, text) => withoutIdentity(text).replaceAll('fix@1', model));
    const source = await open([url]);
    expect((await source.embed(['ab'], never)).vectors).toEqual(dense(['ab']));
    model = 'fix@2';
    await expect(source.embed(['cd'], never)).rejects.toThrow('no server is left');
    expect(source.notes.join('\n')).toContain('serves another model now, fix@2,');
  });

  it('is asked what it serves once only, where its answers name their model', async () => {
    const front = await inFrontOf(await start(), (_, text) => text);
    const source = await open([front.url]);
    for (const text of ['a', 'b', 'c']) await source.embed([text], never);
    expect(front.asked).toEqual(['info', 'embed', 'embed', 'embed']);
  });

  it('leaves its texts to the others', async () => {
    const [plain, other] = [await start(), await start()];
    let model = 'fix@1';
    const { url } = await inFrontOf(other, (_, text) => text.replaceAll('fix@1', model));
    const source = await open([url, plain]);
    model = 'fix@2';
    const lists = numbered(8).map((text) => [text]);
    const answers = await Promise.all(lists.map((texts) => source.embed(texts, never)));
    expect(answers.map(({ vectors }) => vectors)).toEqual(lists.map(dense));
  });
});

describe('a server that takes little at a time', () => {
  it('gives a long list in parts, of which none that was answered is asked for again', async () => {
    const front = await inFrontOf(
      await start({ batchLimit: 4, apiKey: ['sesam'], keyRequestsPerSecond: 20, keyRequestBurst: 4 }),
      (_, text) => text,
    );
    const source = await open([front.url], { apiKey: 'sesam' });
    const texts = numbered(60);
    expect((await source.embed(texts, never)).vectors).toEqual(dense(texts));
    const refused = front.asked.filter((method) => method === 'embed').length - 15;
    expect(refused).toBeLessThan(15);
  });

  it('and answers nothing but that it is full, is given up after the time that was asked for', async () => {
    const full = JSON.stringify({ code: -32011, message: 'full', data: { retryable: true, retryAfterMs: 20 } });
    const { url } = await inFrontOf(await start(), (method, text) => {
      const { id } = JSON.parse(text) as { id: number };
      return method === 'embed' ? `{"jsonrpc":"2.0","id":${id},"error":${full}}` : text;
    });
    const source = await open([url], { patienceMs: 300 });
    await expect(source.embed(['a'], never)).rejects.toThrow('no server has answered for');
  });
});

describe('a server that is frozen', () => {
  it('at the start is left out after the time for a sign of life', async () => {
    const { url: frozen } = await inFrontOf(await start(), () => undefined);
    const source = await open([frozen, await start()], { silenceMs: 200 });
    expect((await source.embed(['ab'], never)).vectors).toEqual(dense(['ab']));
    expect(source.notes.join('\n')).toContain('no answer within 0.2 s');
  });

  it('in the middle loses its call to another one', async () => {
    let isFrozen = false;
    const front = await inFrontOf(await start(), (_, text) => (isFrozen ? undefined : text));
    const source = await open([front.url, await start()], { silenceMs: 200 });
    isFrozen = true;
    const lists = numbered(6).map((text) => [text]);
    const answers = await Promise.all(lists.map((texts) => source.embed(texts, never)));
    expect(answers.map(({ vectors }) => vectors)).toEqual(lists.map(dense));
    expect(source.notes.join('\n')).toContain('no sign of life');
  });

  it('is not one that takes its time', async () => {
    const source = await open([await start()], { silenceMs: 50 });
    expect((await source.embed(['slow:400'], never)).vectors).toEqual(dense(['slow:400']));
    expect(source.notes).toEqual([]);
  });
});

describe('time in which nothing is asked', () => {
  it('is no time in which no server answers', async () => {
    let failuresLeft = 0;
    const { url } = await inFrontOf(await start(), (_, text) => {
      if (failuresLeft === 0) return text;
      failuresLeft -= 1;
      const { id } = JSON.parse(text) as { id: number };
      return `{"jsonrpc":"2.0","id":${id},"error":{"code":-32010,"message":"away","data":{"retryable":true}}}`;
    });
    const source = await open([url], { patienceMs: 900 });
    await source.embed(['a'], never);
    await pause(1000);
    failuresLeft = 1;
    expect((await source.embed(['b'], never)).vectors).toEqual(dense(['b']));
  });
});

describe('what cannot be had', () => {
  it('is refused before the run begins', async () => {
    const url = await start();
    const askedFor = (changes: object) => open([url], { wish: { ...wish, ...changes } });
    await expect(askedFor({ model: 'none' })).rejects.toMatchObject({ name: 'ConfigurationError' });
    await expect(askedFor({ dimensions: 4096 })).rejects.toMatchObject({ name: 'ConfigurationError' });
  });

  it('of one text is told with its place in the list', async () => {
    const source = await open([await start()]);
    const refused = source.embed([...numbered(30), 'x'.repeat(70_000), 'y'], never);
    await expect(refused).rejects.toBeInstanceOf(RefusedText);
    await expect(refused).rejects.toMatchObject({ place: 30 });
  });
});
