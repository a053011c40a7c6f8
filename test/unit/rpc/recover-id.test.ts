import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxIdSearchBytes, recoverId } from '../../../src/rpc/recover-id.ts';

const recover = (text: string) => recoverId(Buffer.from(text));

describe('the id of a frame that is never parsed', () => {
  it.each([
    ['{"jsonrpc":"2.0","id":7,"method":"embed","params":{"inputs":["xxx', '7'],
    [' \ufeff{"id":7}', null],
    ['\ufeff {"id" : 7 , "x', '7'],
    ['{"method":"embed","id":"a\\u0062\\"","params":', '"a\\u0062\\""'],
    ['{"id":9007199254740993,', '9007199254740993'],
    ['{"id":1e400,', '1e400'],
    ['{"id":-0.5,', '-0.5'],
    ['{"id":"é",', '"é"'],
    ['{"\\u0069d":3,', '3'],
    ['{"params":{"id":1,"x":["}",{"id":2}]},"id":3,', '3'],
    ['{"params":{"id":1,"inputs":["never ends', null],
    ['{"id":1,"id":2,"x', '2'],
    ['{"id":1,"id":null,"x', null],
    ['{"id":12', null],
    ['{"id":"cut', null],
    ['{"id":null,"x', null],
    ['{"id":true,"x', null],
    ['{"id":{"a":1},"x', null],
    ['{"id":[1],"x', null],
    ['{"id":01,"x', null],
    ['{"id":NaN,"x', null],
    ['{"x":1 "id":2,', null],
    ['[{"id":1,', null],
    ['"id":1', null],
    ['', null],
    ['{', null],
    ['{}', null],
    ['[[[[[[', null],
  ])('of %j is %j', (text, rawId) => {
    expect(recover(text)).toBe(rawId);
  });

  it('is looked for in the first bytes only, however deep or long the frame', () => {
    expect(recover(`{"params":${'['.repeat(1_000_000)}`)).toBeNull();
    expect(recover(`{"params":"${'x'.repeat(maxIdSearchBytes)}","id":1}`)).toBeNull();
  });

  it('an id that is not UTF-8 is none', () => {
    expect(recoverId(Buffer.from([...Buffer.from('{"id":"'), 0xff, ...Buffer.from('","x":1}')]))).toBeNull();
  });

  it('is what JSON.parse finds, for every complete object', () => {
    const id = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constant(null),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 }), id, (rest, value) => {
        const text = JSON.stringify({ ...rest, id: value }, null, 1);
        fc.pre(Buffer.byteLength(text) < maxIdSearchBytes);
        const rawId = recover(text);
        expect(rawId === null ? null : JSON.parse(rawId)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('never throws, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        recoverId(Buffer.concat([Buffer.from('{"id":'), bytes]));
      }),
    );
  });
});
