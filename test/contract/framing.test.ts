import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { embedding, failure, notification, ok, pong, request, vectors } from '../support/harness/frames.ts';
import { answers, answersEach, onBoth, onStdio } from '../support/harness/rows.ts';

const ping = request(1, 'ping');
const parseFailure = failure(null, -32700);
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);
const line = (...parts: (string | Buffer)[]) => Buffer.concat(parts.map((part) => Buffer.from(part)));

describe('1.A framing and parsing', () => {
  onStdio('F-01 one message is one line, whatever its strings hold', async (client) => {
    const { text } = await client.ask(request(1, 'ping', { nonce: 'a\nb' }));
    expect(text).toBe('{"jsonrpc":"2.0","id":1,"result":{"nonce":"a\\nb"}}');
    expect(client.lines).toHaveLength(2);
  });

  onStdio('F-02 a message may come in pieces, and several in one', async (client) => {
    const inPieces = client.answerTo(ping);
    for (const piece of [ping.slice(0, 9), ping.slice(9, 30), `${ping.slice(30)}\n`]) {
      client.write(piece);
      await sleep(5);
    }
    expect((await inPieces).value).toMatchObject(pong(1));
    const both = [client.answerTo(request(2, 'ping')), client.answerTo(request(3, 'ping'))];
    client.write(`${request(2, 'ping')}\n${request(3, 'ping')}\n`);
    expect((await Promise.all(both)).map(({ value }) => value)).toMatchObject([pong(2), pong(3)]);
  });

  onStdio('F-03 lines of nothing but white space are skipped', async (client) => {
    client.write('\n\r\n   \n\t\n \t\r\n');
    await answers(client, ping, pong(1));
    expect(client.lines).toHaveLength(2);
  });

  onStdio('F-04 CRLF is accepted and never sent', async (client) => {
    await answers(client, `${ping}\r`, pong(1));
    expect(client.lines.join('\n')).not.toContain('\r');
  });

  onBoth('F-05 one leading byte order mark is stripped, none is sent', async (client) => {
    await answers(client, line(byteOrderMark, ping), pong(1));
    await answers(client, line(byteOrderMark, byteOrderMark, ping), parseFailure);
  });

  onStdio('F-07 no line is empty, over a session of every kind of frame', async (client) => {
    await client.tell(notification('ping'));
    await client.tell('[{"jsonrpc":"2.0","method":"info"}]');
    await answersEach(client, [
      ['nonsense', parseFailure],
      ['[]', failure(null, -32600)],
      [embedding(1), ok(1, { vectors: [] })],
    ]);
    expect(client.lines.every((text) => text.startsWith('{') || text.startsWith('['))).toBe(true);
  });

  onBoth('F-10 what is not JSON is -32700 with id null, and the session goes on', async (client) => {
    await answersEach(client, [
      ['not json', parseFailure],
      ['{"jsonrpc":"2.0","id":1,"method":"ping"', parseFailure],
      [ping, pong(1)],
    ]);
  });

  onBoth('F-11 bytes that are not UTF-8 are -32700', async (client) => {
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xf5, 0x80, 0x80, 0x80]]) {
      const frame = line('{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nonce":"', Buffer.from(bytes), '"}}');
      await answers(client, frame, parseFailure);
    }
    await answers(client, ping, pong(1));
  });

  onBoth('F-12 JSON is strict: no NaN, comments, single quotes, trailing commas or trailing data', async (client) => {
    for (const text of [
      `[NaN,${ping}]`,
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nonce":Infinity}}',
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nonce":-Infinity}}',
      `${ping} // comment`,
      `/* comment */ ${ping}`,
      "{'jsonrpc':'2.0','id':1,'method':'ping'}",
      '{"jsonrpc":"2.0","id":1,"method":"ping",}',
      `${ping}x`,
      `${ping}${request(2, 'ping')}`,
      '{"jsonrpc":"2.0","id":01,"method":"ping"}',
      '{"jsonrpc":"2.0","id":.5,"method":"ping"}',
    ]) {
      await answers(client, text, parseFailure);
    }
  });

  onStdio('F-13 only a line feed ends a line', async (client) => {
    await answers(client, '{"jsonrpc":"2.0","id":1,\r"method":"ping"}', pong(1));
    for (const nonce of ['a\u2028b', 'a\u2029b', 'a\u0085b']) {
      await answers(client, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nonce":"${nonce}"}}`, pong(1, nonce));
    }
  });

  onBoth(
    'F-14 no nesting brings down parser or serializer',
    async (client) => {
      const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
      const deep = nested(100_000);
      const { value: asFrame } = await client.ask(deep);
      expect([asFrame].flat()).toMatchObject([
        { id: null, error: { code: expect.toSatisfy((code) => [-32600, -32700].includes(code)) } },
      ]);
      await answers(client, '['.repeat(100_000), parseFailure);
      await answers(client, `{"jsonrpc":"2.0","id":${nested(9_000)},"method":"ping"}`, failure(null, -32600));
      await answers(client, `{"jsonrpc":"2.0","id":1,"method":"ping","params":${nested(9_000)}}`, failure(1, -32602));
      await answers(
        client,
        `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"nonce":${nested(9_000)}}}`,
        failure(1, -32602),
      );
      await answers(client, `{"jsonrpc":"2.0","id":1,"method":${nested(9_000)}}`, failure(1, -32600));
      await answers(client, ping, pong(1));
    },
    { settings: { bodyLimitBytes: 1_048_576 } },
  );

  onStdio('F-15 a line over the limit is -32013 under its id, and the next line is answered', async (client) => {
    const long = embedding(7, 'x'.repeat(1_048_576));
    await answers(client, long, failure(7, -32013, { retryable: false }));
    await answers(
      client,
      `{"jsonrpc":"2.0","method":"embed","params":["${'x'.repeat(70_000)}"]}`,
      failure(null, -32013),
    );
    await answers(client, ping, pong(1));
  });

  onBoth('F-18 all of Unicode is accepted, a lone surrogate counts as U+FFFD', async (client) => {
    await answersEach(client, [
      [embedding(1, 'é😀'), vectors(1, [195, 169, 240, 159])],
      ['{"jsonrpc":"2.0","id":1,"method":"embed","params":{"inputs":["\\ud800"]}}', vectors(1, [239, 191, 189, 0])],
      ['{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', pong('\ud800')],
      ['{"jsonrpc":"2.0","id":1,"method":"embed","params":{"inputs":["\\u0000"]}}', vectors(1, [0, 0, 0, 0])],
    ]);
  });
});
