import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFrameReader, type Frame } from '../../../src/stdio/frame-reader.ts';

const read = (chunks: readonly (Buffer | string)[], maxFrameBytes = 64): Frame[] => {
  const reader = createFrameReader(maxFrameBytes);
  return [...chunks.flatMap((chunk) => reader.push(Buffer.from(chunk))), ...reader.end()];
};
const texts = (chunks: readonly (Buffer | string)[]) =>
  read(chunks).map((frame) => (frame.kind === 'text' ? frame.text : frame.kind));

describe('the frame reader', () => {
  it.each<[string, (Buffer | string)[], string[]]>([
    ['a message in pieces is one frame', ['{"a"', ':', '1}\n'], ['{"a":1}']],
    ['several messages in one read are several frames', ['1\n2\n3\n'], ['1', '2', '3']],
    ['blank lines are skipped', ['\n\r\n   \n\t\n \t\r\n1\n'], ['1']],
    ['CRLF leaves the CR to the parser, which skips it', ['1\r\n'], ['1\r']],
    ['a bare CR is no line end', ['{"id":1,\r"a":2}\n'], ['{"id":1,\r"a":2}']],
    ['U+2028, U+2029, NEL, VT and FF are no line ends', ['"\u2028\u2029\u0085\v\f"\n'], ['"\u2028\u2029\u0085\v\f"']],
    ['a BOM is stripped at the start of the stream', ['\ufeff1\n2\n'], ['1', '2']],
    ['a BOM is stripped at the start of a line', ['1\n\ufeff2\n'], ['1', '2']],
    ['only one BOM is stripped', ['\ufeff\ufeff1\n'], ['\ufeff1']],
    ['a line that holds only a BOM is blank', ['\ufeff\r\n1\n'], ['1']],
    ['the last line needs no line end', ['1\n2'], ['1', '2']],
    ['a blank last line is nothing', ['1\n  '], ['1']],
    ['an empty stream is nothing', [], []],
    [
      'bytes that are not UTF-8 spoil their own line only',
      ['1\n', Buffer.from([0x22, 0xff, 0x22, 0x0a]), '2\n'],
      ['1', 'notUtf8', '2'],
    ],
    ['a cut character at the end of a line is not UTF-8', [Buffer.from([0x22, 0xc3, 0x0a]), '2\n'], ['notUtf8', '2']],
    ['a character split over two chunks survives', [Buffer.from([0xc3]), Buffer.from([0xa9, 0x0a])], ['é']],
  ])('%s', (_, chunks, expected) => {
    expect(texts(chunks)).toEqual(expected);
  });

  it('passes a line of exactly the limit and refuses one byte more, without its line end', () => {
    expect(read(['x'.repeat(64) + '\n1\n'])).toMatchObject([{ kind: 'text' }, { text: '1' }]);
    expect(read(['x'.repeat(65) + '\n1\n'])).toEqual([
      { kind: 'tooLarge', rawId: null },
      { kind: 'text', text: '1' },
    ]);
  });

  it('answers an over-long line as soon as the limit is passed, once, and drops the rest', () => {
    const reader = createFrameReader(64);
    expect(reader.push(Buffer.from('{"id":7,"method":"embed","params":"'))).toEqual([]);
    expect(reader.push(Buffer.alloc(64, 'x'))).toEqual([{ kind: 'tooLarge', rawId: '7' }]);
    expect(reader.push(Buffer.alloc(1_000_000, 'x'))).toEqual([]);
    expect(reader.push(Buffer.from('"}\n"next"\n'))).toEqual([{ kind: 'text', text: '"next"' }]);
    expect(reader.end()).toEqual([]);
  });

  it('an over-long last line is answered once', () => {
    expect(read(['x'.repeat(65)])).toEqual([{ kind: 'tooLarge', rawId: null }]);
  });

  it('gives the same frames however the bytes are cut into chunks', () => {
    const line = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }).map((text) => Buffer.from(text)),
      fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
      fc
        .constantFrom(
          '',
          ' \t\r',
          '\ufeff',
          '\ufeff{"id":1}\r',
          `{"id":12,"x":"${'y'.repeat(80)}"}`,
          `{"x":"${'y'.repeat(54)}","id":12,"z":1}`,
        )
        .map((text) => Buffer.from(text)),
    );
    const stream = fc
      .array(line, { maxLength: 12 })
      .map((lines) => Buffer.concat(lines.flatMap((each) => [each, Buffer.from('\n')])));
    const cuts = fc.array(fc.nat(600), { maxLength: 30 });
    fc.assert(
      fc.property(stream, cuts, fc.boolean(), (bytes, places, hasLineEnd) => {
        const whole = hasLineEnd ? bytes : bytes.subarray(0, Math.max(0, bytes.length - 1));
        const edges = [0, ...places.map((place) => Math.min(place, whole.length)).sort((a, b) => a - b), whole.length];
        const chunks = edges.slice(1).map((edge, index) => whole.subarray(edges[index], edge));
        const single = [...whole].map((byte) => Buffer.from([byte]));
        expect(read(chunks)).toEqual(read([whole]));
        expect(read(single)).toEqual(read([whole]));
      }),
      { numRuns: 300 },
    );
  });

  it('agrees with splitting the text where every line is valid and short', () => {
    fc.assert(
      fc.property(fc.array(fc.json({ maxDepth: 1 }).filter((text) => Buffer.byteLength(text) <= 64)), (lines) => {
        expect(texts([lines.map((each) => `${each}\n`).join('')])).toEqual(lines);
      }),
    );
  });
});
