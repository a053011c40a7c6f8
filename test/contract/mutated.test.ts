import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { openStdio } from '../../src/server.ts';
import { createFrameRecord } from '../support/harness/client.ts';
import { batch, embedding, handshake, notification, pong, request } from '../support/harness/frames.ts';
import { openHttpClient } from '../support/harness/http-client.ts';
import { startServer } from '../support/harness/server.ts';

const frameCount = 2000;
const settings = { maxQueuedItems: 10_000 };
const originals = [
  request(1, 'ping', { nonce: 'é' }),
  request('id', 'info', {}),
  handshake(2),
  embedding(3, 'a', 'b', { type: 'text', text: 'c' }),
  request(4, 'embed', {
    inputs: ['a'],
    kind: 'query',
    encoding: 'f32-base64',
    _meta: { progressToken: 'token', deadlineMs: 1000 },
  }),
  request(5, 'embed/sparse', { texts: ['aa'] }),
  request(6, 'embed/multi', { inputs: ['ab'], 'x-trivec': { truncate: false, output: 'int8', priority: 'bulk' } }),
  request(7, 'rerank', { query: 'a b', passages: ['a', 'b'], topN: 1, method: 'cross-encoder' }),
  notification('notifications/cancel', { id: 3 }),
  batch(request(8, 'ping'), notification('info'), embedding(9, 'x'), '1'),
].map((frame) => Buffer.from(frame));

/** Uniform whole numbers below a bound, the same for the same seed. */
function createRandom(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

const values = [
  'null',
  'true',
  '-1',
  '1e400',
  '[]',
  '{}',
  '"\\ud800"',
  '[[[[]]]]',
  '{"__proto__":{"id":1}}',
  '9007199254740993',
  '0.1',
  '',
];

/** One to three faults at random places: flipped bytes, cuts, insertions, doubled parts, nesting, other types. */
function mutate(random: (bound: number) => number): Buffer {
  let frame = originals[random(originals.length)] ?? Buffer.alloc(0);
  for (let faults = 1 + random(3); faults > 0; faults--) {
    const at = random(frame.length + 1);
    const end = at + random(frame.length - at + 1);
    const [before, inside, behind] = [frame.subarray(0, at), frame.subarray(at, end), frame.subarray(end)];
    const nesting = 1 + random(random(10) === 0 ? 5000 : 5);
    const kinds: (() => Buffer[])[] = [
      () => [before, Buffer.from([(frame[at] ?? 0) ^ (1 << random(8))]), frame.subarray(at + 1)],
      () => [before],
      () => [before, behind],
      () => [before, Buffer.from(Array.from({ length: 1 + random(4) }, () => random(256))), frame.subarray(at)],
      () => [before, inside, inside, behind],
      () => [before, Buffer.from('['.repeat(nesting)), inside, Buffer.from(']'.repeat(nesting)), behind],
      () => [before, Buffer.from('{"a":'.repeat(nesting)), inside, Buffer.from('}'.repeat(nesting)), behind],
      () => [
        Buffer.from(
          frame
            .toString()
            .replace(/:("[^"]*"|\d+)/g, (part) => (random(3) === 0 ? `:${values[random(values.length)] ?? ''}` : part)),
        ),
      ],
    ];
    frame = Buffer.concat(kinds[random(kinds.length)]?.() ?? [frame]);
  }
  return frame;
}

describe('mutated frames', () => {
  it(`stdio: after ${frameCount} of them ping is answered, and no answer was anything but a frame`, async () => {
    const server = await startServer(settings);
    const [input, output] = [new PassThrough(), new PassThrough()];
    const record = createFrameRecord();
    const session = openStdio(server.service, { input, output }, server.parts);
    let received = '';
    output.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
    const random = createRandom(42);
    let sentLines = 1;
    input.write(`${handshake('first')}\n`);
    for (let sent = 0; sent < frameCount; sent++) {
      const frame = mutate(random);
      record.sent(frame);
      sentLines += frame.toString('latin1').split('\n').length;
      if (!input.write(Buffer.concat([frame, Buffer.from('\n')])))
        await new Promise((resolve) => input.once('drain', resolve));
    }
    input.end(`${request('last', 'ping')}\n`);
    await session.finished;
    const lines = received.split('\n').slice(0, -1);
    const answers = lines.map((line) => record.received(line)).filter(({ value }) => value.method === undefined);
    expect(record.problems).toEqual([]);
    expect(answers.length).toBeGreaterThan(frameCount / 2);
    expect(answers.length).toBeLessThanOrEqual(sentLines + 1);
    expect(answers.map(({ value }) => value)).toContainEqual(expect.objectContaining({ id: 'last', result: {} }));
    expect(server.logText()).not.toContain('"err"');
    await server.close();
  });

  it(`http: after ${frameCount} of them ping is answered, and no answer was anything but a frame`, async () => {
    const server = await startServer(settings);
    const client = await openHttpClient(server);
    const random = createRandom(43);
    const statuses = new Set<number>();
    for (let sent = 0; sent < frameCount; sent += 8) {
      const answers = await Promise.all(Array.from({ length: 8 }, () => client.post('/rcp', mutate(random))));
      for (const { status } of answers) statuses.add(status);
    }
    expect([...statuses].sort()).toEqual([200, 204]);
    expect((await client.ask(request('last', 'ping'))).value).toMatchObject(pong('last'));
    expect(client.problems()).toEqual([]);
    expect(server.logText()).not.toContain('"err"');
    await client.close();
    await server.close();
  });
});
