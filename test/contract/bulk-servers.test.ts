import { afterEach, describe, expect, it } from 'vitest';
import { BulkFailure } from '../../src/bulk/row.ts';
import type { VectorSource } from '../../src/bulk/source/source.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { createBulkServers, never, vectorOf, wish } from '../support/bulk-servers.ts';

const bulkServers = createBulkServers({ patienceMs: 20_000, answerTimeoutMs: 10_000, silenceMs: 5_000 });
const { start, open, inFrontOf } = bulkServers;
afterEach(() => bulkServers.closeAll());

const listsOf = (count: number, prefix = '') =>
  Array.from({ length: count }, (_, list) => [`${prefix}${list}a`, `${prefix}${list}b`]);

async function embedAll(source: VectorSource, lists: readonly string[][]): Promise<void> {
  const answers = await Promise.all(lists.map((texts) => source.embed(texts, never)));
  for (const [position, { vectors, tokens }] of answers.entries()) {
    const texts = lists[position] ?? [];
    expect(vectors).toEqual({ kind: 'dense', vectors: texts.map(vectorOf) });
    expect(tokens).toBe(Buffer.byteLength(texts.join('')));
  }
}

describe('several servers', () => {
  it('share the texts, and answer every one', async () => {
    const servers = [await start(), await start()];
    await embedAll(await open(servers.map(({ url }) => url)), listsOf(24));
    const [first, second] = servers.map(({ server }) => server.engine.batches.length);
    expect(Math.min(first ?? 0, second ?? 0)).toBeGreaterThan(8);
  });

  it('that refuse because they are full are asked again after the time they name', async () => {
    const { url } = await start({ maxQueuedItems: 2 });
    await embedAll(await open([url]), listsOf(12));
  });

  it('that die are left out, and their texts go to the others', async () => {
    const [dying, living] = [await start(), await start()];
    const source = await open([dying.url, living.url]);
    const lists = [...listsOf(3), ['slow:300', 'slow:301'], ...listsOf(20)];
    const all = embedAll(source, lists);
    await dying.server.close();
    await all;
    await embedAll(source, listsOf(6, 'x'));
    expect(source.notes.join('\n')).toContain(`${dying.url} is left out for now`);
  });

  it('that cannot be reached at the start are left out, unless none can', async () => {
    const { url } = await start();
    await embedAll(await open([url, 'http://127.0.0.1:9']), listsOf(4));
    await expect(open(['http://127.0.0.1:9'])).rejects.toThrow(BulkFailure);
  });

  it('of different models are refused with both names', async () => {
    const { url } = await start();
    const { url: other } = await inFrontOf(url, (_, text) => text.replaceAll('fix@1', 'fix@2'));
    await expect(open([url, other])).rejects.toMatchObject({
      problems: [expect.stringContaining('fix@1'), expect.stringContaining('fix@2')],
    });
  });

  it('that refuse the key end the run at once', async () => {
    const { url } = await start({ apiKey: ['secret'] });
    await expect(open([url], { apiKey: 'wrong' })).rejects.toThrow(ConfigurationError);
    await embedAll(await open([url], { apiKey: 'secret' }), listsOf(2));
  });

  it('that are all gone for longer than may be end the run', async () => {
    const { server, url } = await start();
    const source = await open([url], { patienceMs: 300 });
    await server.close();
    await expect(source.embed(['a'], never)).rejects.toThrow('no server has answered for');
  });

  it('end their calls when the run is ended', async () => {
    const { url } = await start();
    const source = await open([url]);
    const ended = new AbortController();
    const call = source.embed(['hold'], ended.signal);
    ended.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
  });
});

describe('one server', () => {
  it('gives sparse vectors and matrices as well', async () => {
    const { url } = await start();
    const sparse = await open([url], { wish: { ...wish, method: 'sparse' } });
    expect((await sparse.embed(['aab'], never)).vectors).toEqual({
      kind: 'sparse',
      sparse: [{ indices: Int32Array.of(97, 98), values: Float32Array.of(2, 1) }],
    });
    const multi = await open([url], { wish: { ...wish, method: 'multi' } });
    expect((await multi.embed(['ab'], never)).vectors).toEqual({
      kind: 'multi',
      matrices: [{ values: Float32Array.of(97, 0, 0, 0, 98, 0, 0, 0), dimension: 4 }],
    });
  });
});
