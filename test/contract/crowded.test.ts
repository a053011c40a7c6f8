/** Owns what a server with more work than it can take answers, and that it stays healthy. */
import { describe, expect } from 'vitest';
import { batch, embedding, failure, ok, request } from '../support/harness/frames.ts';
import { answers, onBoth, onHttp } from '../support/harness/rows.ts';

const many = <Made>(count: number, make: (index: number) => Made) => Array.from({ length: count }, (_, at) => make(at));
const overloaded = { code: -32011, data: { retryable: true, retryAfterMs: expect.toSatisfy(Number.isInteger) } };

describe('a server that has more work than it can take', () => {
  onBoth(
    'of 200 calls at once each has its own vectors or -32011, and control methods are never refused',
    async (client, server) => {
      const held = client.ask(embedding('held', 'hold'));
      await server.untilBusy(1, 0);
      const calls = many(200, (id) => client.ask(embedding(id, String.fromCharCode(id + 32))));
      for (const control of [request('p', 'ping'), request('i', 'info')]) {
        expect((await client.ask(control)).value).toHaveProperty('result');
      }
      server.engine.release();
      expect((await held).value).toMatchObject(ok('held'));
      const values = (await Promise.all(calls)).map(({ value }) => value);
      let answered = 0;
      for (const [id, value] of values.entries()) {
        const isRefused = value.error !== undefined;
        if (!isRefused) answered += 1;
        const bytes = [...Buffer.from(String.fromCharCode(id + 32)), 0, 0, 0].slice(0, 4);
        expect(value).toMatchObject(isRefused ? { id, error: overloaded } : ok(id, { vectors: [bytes] }));
      }
      expect(answered).toBeGreaterThan(0);
      expect(answered).toBeLessThan(200);
    },
    { settings: { maxQueuedItems: 4 } },
  );

  onBoth('counts texts, not calls: two texts are refused where there is room for one', async (client, server) => {
    const held = [client.ask(embedding(1, 'hold'))];
    await server.untilBusy(1, 0);
    held.push(client.ask(embedding(2, 'a')));
    await server.untilBusy(1, 1);
    await answers(client, embedding(3, 'b', 'c'), failure(3, -32011));
    await answers(client, request(4, 'rerank', { query: 'b', passages: ['b', 'c'] }), failure(4, -32011));
    held.push(client.ask(embedding(5, 'd')));
    server.engine.release();
    expect((await Promise.all(held)).map(({ value }) => value)).toMatchObject([ok(1), ok(2), ok(5)]);
  });

  onBoth(
    'a batch of the most members with the most texts each has one answer for each member, in order',
    async (client, server) => {
      const texts = (member: number) => many(4, (at) => `${String(member)} ${String(at)}`);
      const { value } = await client.ask(batch(...many(64, (id) => embedding(id, ...texts(id)))));
      expect(value.map(({ id }: { id: number }) => id)).toEqual(many(64, (id) => id));
      const members: { error?: object; result?: { vectors: unknown[] } }[] = value;
      const refused = members.filter(({ error }) => error !== undefined);
      for (const { error } of refused) expect(error).toMatchObject(overloaded);
      const good = members.filter(({ result }) => result?.vectors.length === 4);
      expect(good.length).toBeGreaterThan(0);
      expect(good.length + refused.length).toBe(64);
      const { queuedItems, runningItems } = server.service.scheduler.gauges;
      expect([queuedItems, runningItems]).toEqual([0, 0]);
    },
    { settings: { maxBatchMembers: 64, maxQueuedItems: 16 } },
  );

  onHttp(
    'is healthy: live and ready are 200 without a key while calls are refused, and a call without the key is 401',
    async (client, server) => {
      const key = { Authorization: 'Bearer k3y' };
      const held = client.post('/rcp/embed', embedding('held', 'hold'), key);
      await server.untilBusy(1, 0);
      const calls = many(20, (id) => client.post('/rcp/embed', embedding(id, `text ${String(id)}`), key));
      // Nothing else than a refusal can come while the held call has the executor.
      expect(JSON.parse((await Promise.race(calls)).body)).toMatchObject({ error: overloaded });
      for (const path of ['/health/live', '/health/ready']) {
        expect([path, (await fetch(`http://127.0.0.1:${client.port}${path}`)).status]).toEqual([path, 200]);
      }
      const { status, body } = await client.post('/rcp', embedding(99, 'a'));
      expect([status, JSON.parse(body)]).toMatchObject([401, failure(99, -32012)]);
      server.engine.release();
      expect(JSON.parse((await held).body)).toMatchObject(ok('held'));
      for (const [id, answer] of (await Promise.all(calls)).entries()) {
        const value = JSON.parse(answer.body);
        expect(value).toMatchObject(value.error === undefined ? ok(id) : { id, error: overloaded });
      }
    },
    { settings: { apiKey: ['k3y'] } },
  );
});
