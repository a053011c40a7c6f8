import { describe, expect } from 'vitest';
import { embedding, exactly, failure, handshake, notification, ok, pong, request } from '../support/harness/frames.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { openHttpClient } from '../support/harness/http-client.ts';
import { answers, answersEach, onHttp } from '../support/harness/rows.ts';

const single = { settings: { httpSession: 'single' } } as const;

/** What the official conformance suite asks about sessions, in its order, with the codes that came. */
async function probeSession(client: HttpClient): Promise<unknown[]> {
  const retrieve = request(1, 'retrieve', { query: 'x', k: 1 });
  const frames = [
    retrieve,
    request(200, 'initialize', { protocolVersion: 0 }),
    retrieve,
    handshake(2),
    handshake('reinit'),
  ];
  const codes: unknown[] = [];
  for (const frame of frames) codes.push((await client.ask(frame)).value.error?.code ?? 'ok');
  return codes;
}

describe('1.F sessions on HTTP', () => {
  onHttp('L-20 every request counts as initialized, initialize and info may be repeated', async (client) => {
    await answers(client, embedding(1, 'a'), ok(1));
    for (const id of [2, 3]) await answers(client, handshake(id), ok(id, { protocolVersion: 1 }));
    for (const id of [4, 5]) await answers(client, request(id, 'info'), ok(id, { protocolVersion: 1 }));
  });

  onHttp('L-21 methods that are not offered are -32003, undefined ones -32004', async (client) => {
    for (const [path, code] of [
      ['retrieve', -32003],
      ['does/not/exist', -32004],
    ] as const) {
      const { body } = await client.post(`/rcp/${path}`, request(1, path));
      expect(JSON.parse(body)).toMatchObject(failure(1, code));
    }
  });

  onHttp('L-22 a version below 1 is -32002 and has no lasting effect', async (client) => {
    await answersEach(client, [
      [request(1, 'initialize', { protocolVersion: 0 }), failure(1, -32002)],
      [embedding(2, 'a'), ok(2)],
    ]);
  });

  onHttp('L-23 a stateless server gives the conformance suite the three answers it cannot avoid', async (client) => {
    expect(await probeSession(client)).toEqual([-32003, -32002, -32003, 'ok', 'ok']);
  });

  onHttp(
    'L-24 with a single session the rules of stdio hold, and a shutdown resets it',
    async (client, server) => {
      for (let runs = 0; runs < 2; runs++) {
        expect(await probeSession(client)).toEqual([-32001, -32002, -32001, 'ok', -32600]);
        const other = await openHttpClient(server);
        await answers(other, embedding(3, 'a'), ok(3));
        await answers(other, request(4, 'shutdown'), ok(4, exactly({})));
        await other.close();
        await answers(client, embedding(5, 'a'), failure(5, -32001));
      }
    },
    single,
  );

  onHttp('L-25 a session token scopes a session, and is never required', async (client) => {
    const opened = await client.ask(handshake(1));
    const token = String(opened.value.result._meta.session);
    expect(token.length).toBeGreaterThan(15);
    const withToken = { 'RCP-Session': token };
    expect(JSON.parse((await client.post('/rcp', handshake(2), withToken)).body)).toMatchObject(failure(2, -32600));
    expect(JSON.parse((await client.post('/rcp', embedding(3, 'a'), withToken)).body)).toMatchObject(ok(3));
    await answers(client, handshake(4), ok(4));
    const unknown = await client.post('/rcp', handshake(5), { 'RCP-Session': 'never-given' });
    expect(JSON.parse(unknown.body)).toMatchObject(ok(5));
  });

  onHttp('L-25 no two sessions have the same token', async (client) => {
    const tokens = await Promise.all(
      [1, 2, 3].map(async (id) => (await client.ask(handshake(id))).value.result._meta.session),
    );
    expect(new Set(tokens).size).toBe(3);
  });

  onHttp('L-26 shutdown is acknowledged and affects nobody', async (client, server) => {
    const other = await openHttpClient(server);
    await answers(client, request(1, 'shutdown', {}), ok(1, exactly({})));
    await answersEach(other, [
      [request(2, 'ping'), pong(2)],
      [embedding(3, 'a'), ok(3)],
    ]);
    await other.tell(notification('shutdown'));
    await answers(client, embedding(4, 'a'), ok(4));
    await other.close();
  });
});
