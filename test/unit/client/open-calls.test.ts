import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RcpError } from '../../../src/client/error.ts';
import { createLineReader, type LineEnds } from '../../../src/client/lines.ts';
import { createOpenCalls } from '../../../src/client/open-calls.ts';
import { rejectionOf } from './fake-server.ts';

const maxBytes = 1000;
const long = 'x'.repeat(5 * maxBytes);
const frame = (members: object) => JSON.stringify({ jsonrpc: '2.0', ...members });
const settled = (promise: Promise<unknown>) =>
  promise.catch((error: unknown) => (error instanceof RcpError ? [error.errorName, error.retryable] : error));

/** Calls 1 and 2 on a connection, and what becomes of them after these lines and both their answers. */
async function afterLines(lines: readonly string[], ids = [1, 2]) {
  const calls = createOpenCalls('own', maxBytes);
  const reader = createLineReader(maxBytes, { onLine: calls.receive, onLongLine: calls.receiveLong });
  const open = ids.map((id) => settled(calls.add(id, null)));
  const answers = ids.map((id) => frame({ id, result: { id } }));
  reader.read(Buffer.from(`${[...lines, ...answers].join('\n')}\n`));
  return Promise.all(open);
}

describe('an answer that is too long to be read', () => {
  it.each([
    ['before its result', frame({ id: 1, result: { long } })],
    ['first of all', JSON.stringify({ id: 1, jsonrpc: '2.0', result: { id: 2, long } })],
    ['behind its result', JSON.stringify({ jsonrpc: '2.0', result: { long, id: 2 }, id: 1 })],
    ['before the version at the end', JSON.stringify({ result: { long }, id: 1, jsonrpc: '2.0' })],
    ['between spaces', `{ "jsonrpc": "2.0", "id": 1 , "result": { "long": "${long}" } }`],
  ])('fails the call that it names %s, and no other', async (_, line) => {
    expect(await afterLines([line])).toEqual([['tooLarge', false], { id: 2 }]);
  });

  it('that names no call fails the only one under way, and of several each so that it is sent again', async () => {
    const line = JSON.stringify({ jsonrpc: '2.0', result: { id: 1, long } });
    expect(await afterLines([line], [1])).toEqual([['tooLarge', false]]);
    expect(await afterLines([line])).toEqual([
      ['unavailable', true],
      ['unavailable', true],
    ]);
  });

  it('that nobody waits for is skipped, and so is a notification', async () => {
    const lines = [frame({ id: 9, result: { long } }), frame({ method: 'notifications/message', params: { long } })];
    expect(await afterLines(lines)).toEqual([{ id: 1 }, { id: 2 }]);
  });
});

describe('an error without an id', () => {
  const refused = frame({ id: null, error: { code: -32013, message: 'frame too large', data: { retryable: false } } });

  it('is that of the only call under way', async () => {
    expect(await afterLines([refused], [1])).toEqual([['tooLarge', false]]);
  });

  it('among several calls ends each so that it is sent again, with what the server said', async () => {
    expect(await afterLines([refused])).toEqual([
      ['unavailable', true],
      ['unavailable', true],
    ]);
    const calls = createOpenCalls('own', maxBytes);
    const both = [1, 2].map((id) => rejectionOf(calls.add(id, null)));
    calls.receive(refused);
    const error = await both[1];
    expect(error.message).toContain('frame too large');
    expect(error.cause).toMatchObject({ code: -32013 });
    // Whoever waited tells the server that it waits no more.
    expect([calls.forget(1), calls.forget(2)]).toEqual([true, true]);
  });

  it('is nothing where no call is under way, and a result without an id neither', async () => {
    expect(await afterLines([refused], [])).toEqual([]);
    expect(await afterLines([frame({ id: null, result: {} })])).toEqual([{ id: 1 }, { id: 2 }]);
  });
});

describe('lines', () => {
  it('are the same in whatever pieces they come, and of a long one its ends are left', () => {
    const line = fc.string({ unit: 'binary-ascii', maxLength: 900 }).map((text) => text.replaceAll('\n', ''));
    fc.assert(
      fc.property(fc.array(line, { maxLength: 6 }), fc.array(fc.integer({ min: 1, max: 400 })), (lines, sizes) => {
        const seen: (string | LineEnds)[] = [];
        const reader = createLineReader(300, {
          onLine: (text) => seen.push(text),
          onLongLine: (ends) => seen.push(ends),
        });
        const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
        let start = 0;
        for (const size of [...sizes, bytes.length]) {
          reader.read(bytes.subarray(start, start + size));
          start = Math.min(bytes.length, start + size);
        }
        const ends = (text: string) => ({ head: text.slice(0, 256), tail: text.slice(-256) });
        expect(seen).toEqual(
          lines.filter((text) => text !== '').map((text) => (text.length > 300 ? ends(text) : text)),
        );
      }),
    );
  });
});
