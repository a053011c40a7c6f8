import { describe, expect, it } from 'vitest';
import type { HttpClient } from '../../../src/bench/http-client.ts';
import { judge } from '../../../src/bench/target.ts';
import type { CallSettings, Target } from '../../../src/bench/target.ts';
import { openaiTarget } from '../../../src/bench/targets/openai.ts';
import { rcpTarget } from '../../../src/bench/targets/rcp.ts';
import { teiTarget } from '../../../src/bench/targets/tei.ts';

const answer = (body: unknown, status = 200) => ({ status, body: Buffer.from(JSON.stringify(body)), elapsedMs: 1 });
const vectors = [
  [0.1, 0.2],
  [0.3, 0.4],
];
const settings: CallSettings = { model: null, encoding: 'f32-base64' };
const request = { texts: ['a', 'b'], kind: 'document', isBulk: false } as const;

/** A client of a server that gives one answer to everything, and the paths it was asked for. */
function clientOf(body: unknown, status = 200): { client: HttpClient; asked: string[] } {
  const asked: string[] = [];
  const call = async (path: string) => {
    asked.push(path);
    return answer(body, status);
  };
  return { client: { get: call, post: call, close: () => undefined }, asked };
}

describe('RCP', () => {
  it('is asked for base64, and tells kind, model and priority where there is something to tell', () => {
    expect(rcpTarget.body(request, settings)).toEqual({
      jsonrpc: '2.0',
      id: 1,
      method: 'embed',
      params: { inputs: ['a', 'b'], kind: 'document', encoding: 'f32-base64' },
    });
    expect(rcpTarget.body({ ...request, isBulk: true }, { ...settings, model: 'm' })).toMatchObject({
      params: { 'x-trivec': { priority: 'bulk', model: 'm' } },
    });
  });

  it('its vectors and tokens are read from the result', () => {
    const result = { vectors: ['AAAA', 'AAAA'], usage: { inputTokens: 12 } };
    expect(judge(rcpTarget, 2, answer({ jsonrpc: '2.0', id: 1, result }))).toEqual({ kind: 'answered', tokens: 12 });
  });

  it('its error is a failure by its code, but an overload is a refusal, though both are HTTP 200', () => {
    const error = (code: number) => answer({ jsonrpc: '2.0', id: 1, error: { code, message: 'why' } });
    expect(judge(rcpTarget, 2, error(-32602))).toEqual({ kind: 'failed', reason: 'error -32602', message: 'why' });
    expect(judge(rcpTarget, 2, error(-32011))).toEqual({ kind: 'refused' });
  });

  it('a server that offers no base64 is asked for JSON, one that offers no embed is not asked at all', async () => {
    const info = (embed: unknown) => clientOf({ result: { capabilities: { embed } } });
    const plain = info({ encodings: ['json'] });
    expect(await rcpTarget.settle(plain.client, '/rcp/embed', 'm')).toEqual({ model: 'm', encoding: 'json' });
    expect(plain.asked).toEqual(['/rcp/info']);
    const both = info({ encodings: ['json', 'f32-base64'] });
    expect(await rcpTarget.settle(both.client, '/rcp', null)).toEqual(settings);
    await expect(rcpTarget.settle(info(undefined).client, '/rcp', null)).rejects.toThrow('does not offer "embed"');
  });
});

describe('text-embeddings-inference', () => {
  it('is asked to cut what is too long', () => {
    expect(teiTarget.body(request, settings)).toEqual({ inputs: ['a', 'b'], truncate: true });
  });

  it('its bare list is counted, and tells no tokens', () => {
    expect(judge(teiTarget, 2, answer(vectors))).toEqual({ kind: 'answered', tokens: null });
  });
});

describe('an OpenAI-compatible server', () => {
  const data = vectors.map((embedding, index) => ({ index, embedding }));

  it('is asked with a model', () => {
    expect(openaiTarget.body(request, { ...settings, model: 'm' })).toEqual({ model: 'm', input: ['a', 'b'] });
  });

  it('its entries are counted, with the tokens that it tells or without', () => {
    expect(judge(openaiTarget, 2, answer({ data, usage: { prompt_tokens: 7 } }))).toMatchObject({ tokens: 7 });
    expect(judge(openaiTarget, 2, answer({ data }))).toEqual({ kind: 'answered', tokens: null });
  });

  it('the first model that it lists is used where none is named', async () => {
    const listed = clientOf({ data: [{ id: 'first' }, { id: 'second' }] });
    expect(await openaiTarget.settle(listed.client, '/v1/embeddings', null)).toMatchObject({ model: 'first' });
    expect(listed.asked).toEqual(['/v1/models']);
    expect(await openaiTarget.settle(listed.client, '/v1/embeddings', 'mine')).toMatchObject({ model: 'mine' });
    const none = clientOf({ data: [] }).client;
    await expect(openaiTarget.settle(none, '/v1/embeddings', null)).rejects.toThrow('--model');
  });
});

const bodies: readonly [string, Target, (vectors: readonly unknown[]) => unknown][] = [
  ['rcp', rcpTarget, (list) => ({ result: { vectors: list } })],
  ['tei', teiTarget, (list) => list],
  ['openai', openaiTarget, (list) => ({ data: list.map((embedding) => ({ embedding })) })],
];

describe.each(bodies)('an answer of %s', (_name, target, bodyOf) => {
  it.each([
    ['too few vectors', [[0.1]]],
    ['too many vectors', [[0.1], [0.1], [0.1]]],
    ['an empty vector', [[0.1], []]],
    ['null for a vector', [[0.1], null]],
  ])('with %s is a failure', (_what, list) => {
    expect(judge(target, 2, answer(bodyOf(list)))).toMatchObject({
      kind: 'failed',
      reason: 'wrong number of vectors',
    });
  });

  it('that is no JSON, or of another shape, or of another status, is a failure', () => {
    const html = { status: 200, body: Buffer.from('<html>'), elapsedMs: 1 };
    expect(judge(target, 1, html)).toMatchObject({ kind: 'failed', reason: 'no JSON' });
    for (const odd of [null, 3, 'x', {}, { data: 1, result: 2 }]) {
      expect(judge(target, 1, answer(odd))).toMatchObject({ kind: 'failed', reason: 'wrong number of vectors' });
    }
    expect(judge(target, 2, answer(bodyOf(vectors), 500))).toMatchObject({ kind: 'failed', reason: 'HTTP 500' });
  });

  it('with status 429 is a refusal', () => {
    expect(judge(target, 2, answer({ error: 'busy' }, 429))).toEqual({ kind: 'refused' });
  });
});
