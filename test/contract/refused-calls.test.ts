/** Owns failures that users of comparable servers met in calls of a wrong shape, of a full queue, and of bad values. */
import { describe, expect } from 'vitest';
import { batch, embedding, failure, ok, request } from '../support/harness/frames.ts';
import { fillQueue } from '../support/harness/full-queue.ts';
import { answers, onBoth, onHttp } from '../support/harness/rows.ts';

const textMethods = ['embed', 'embed/sparse', 'embed/multi'];

describe('a list of texts', () => {
  onBoth('is never read out of a single text, whatever the method and the name of the list', async (client) => {
    for (const method of textMethods) {
      for (const name of ['inputs', 'texts']) {
        for (const text of ['cat', '', 'a b c']) {
          await answers(client, request(1, method, { [name]: text }), failure(1, -32602, { field: name }));
        }
      }
    }
  });

  onBoth('gives the same under both of its names', async (client) => {
    for (const method of textMethods) {
      const [first, second] = [
        (await client.ask(request(1, method, { inputs: ['cat', ''] }))).value.result,
        (await client.ask(request(1, method, { texts: ['cat', ''] }))).value.result,
      ];
      expect(first).toBeTypeOf('object');
      const { usage: firstUsage, ...firstValues } = first;
      const { usage: secondUsage, ...secondValues } = second;
      expect(firstValues).toEqual(secondValues);
      expect(firstUsage.inputTokens).toBe(secondUsage.inputTokens);
    }
  });
});

describe('a full queue', () => {
  onBoth('refuses calls of every shape and method alike', async (client, server) => {
    const accepted = await fillQueue(client, server);
    const overloaded = (id: number) => failure(id, -32011, { retryable: true });
    await answers(client, embedding(101, 'apple'), overloaded(101));
    await answers(client, embedding(102, 'apple', 'pear'), overloaded(102));
    await answers(client, batch(embedding(103, 'apple')), [overloaded(103)]);
    await answers(client, request(104, 'rerank', { query: 'apple', passages: ['pear'] }), overloaded(104));
    await answers(client, request(105, 'embed/sparse', { texts: ['apple'] }), overloaded(105));
    await answers(client, request(106, 'embed/multi', { inputs: [{ type: 'text', text: 'apple' }] }), overloaded(106));
    server.engine.release();
    expect((await Promise.all(accepted)).map(({ value }) => value)).toMatchObject(accepted.map((_, at) => ok(at + 1)));
  });
});

describe('a value that is not finite', () => {
  const calls = (bad: string): readonly (readonly [string, object, string])[] => [
    ['embed', { inputs: ['a', bad, 'b'] }, 'inputs[1]'],
    ['embed', { inputs: ['a', 'b', bad], encoding: 'f32-base64' }, 'inputs[2]'],
    ['embed', { inputs: [bad, 'b'], 'x-trivec': { output: 'int8' } }, 'inputs[0]'],
    ['embed/sparse', { texts: ['a', bad, 'b'] }, 'texts[1]'],
    ['embed/multi', { inputs: ['a', bad, 'b'] }, 'inputs[1]'],
    ['embed/multi', { inputs: [bad], encoding: 'f32-base64' }, 'inputs[0]'],
    ['rerank', { query: 'a', passages: ['a', 'b', bad, 'c'] }, 'passages[2]'],
  ];

  onHttp('fails its call in every method and form, names its input, and is counted by model', async (client) => {
    for (const bad of ['nan', 'inf', '-inf']) {
      for (const [method, params, field] of calls(bad)) {
        const { text, value } = await client.ask(request(1, method, params));
        expect(value).toMatchObject(failure(1, -32603, { field }));
        expect(text).not.toContain('null');
        // A good run in between, so that the executor is not replaced.
        await answers(client, embedding(2, 'a'), ok(2));
      }
    }
    const { body } = await client.exchange('GET', '/metrics');
    const counted = [...body.matchAll(/^trivec_non_finite_results_total\{([^}]*)\} (\d+)$/gm)];
    expect(Object.fromEntries(counted.map(([, labels, count]) => [labels, Number(count)]))).toEqual({
      'model="fix@1",head="dense"': 9,
      'model="fix-s@1",head="sparse"': 3,
      'model="fix-m@1",head="rows"': 6,
      'model="fix-r@1",head="logit"': 3,
    });
  });
});
