import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseFrame, type Member } from '../../../src/rpc/envelope.ts';
import { frameLimits } from '../../../src/rpc/json-text.ts';
import { lastMember, rawObject } from './raw-json.ts';

const J = '"jsonrpc":"2.0"';

function single(text: string): Member {
  const frame = parseFrame(text);
  if (frame.kind !== 'single') throw new Error(`a ${frame.kind} frame`);
  return frame.member;
}
function members(text: string): readonly Member[] {
  const frame = parseFrame(text);
  if (frame.kind !== 'batch') throw new Error(`a ${frame.kind} frame`);
  return frame.members;
}
const shape = (member: Member) => (member.kind === 'notification' ? 'notification' : `${member.kind} ${member.rawId}`);

const rules: readonly (readonly [text: string, alone: string, inBatch: string])[] = [
  [`{${J},"id":1,"method":"ping"}`, 'request 1', 'request 1'],
  ['{"id":1,"method":"ping"}', 'request 1', 'request 1'],
  ['{"method":"ping"}', 'notification', 'notification'],
  [`{${J},"method":""}`, 'notification', 'notification'],
  [`{${J},"id":"","method":"ping"}`, 'request ""', 'request ""'],
  [`{${J},"id":"\\u0031","method":"ping"}`, 'request "\\u0031"', 'request "\\u0031"'],
  [`{${J},"id":null,"method":"ping"}`, 'invalid null', 'invalid null'],
  [`{${J},"id":true,"method":"ping"}`, 'invalid null', 'invalid null'],
  [`{${J},"id":{"id":1},"method":"ping"}`, 'invalid null', 'invalid null'],
  [`{${J},"id":[1],"method":"ping"}`, 'invalid null', 'invalid null'],
  ['{"jsonrpc":"1.0","id":5,"method":"ping"}', 'invalid 5', 'invalid null'],
  ['{"jsonrpc":2.0,"id":5,"method":"ping"}', 'invalid 5', 'invalid null'],
  ['{"jsonrpc":null,"id":5,"method":"ping"}', 'invalid 5', 'invalid null'],
  ['{"jsonrpc":"1.0","method":"ping"}', 'invalid null', 'invalid null'],
  [`{${J},"id":5}`, 'invalid 5', 'invalid null'],
  [`{${J},"id":5,"method":1}`, 'invalid 5', 'invalid null'],
  [`{${J},"id":5,"method":null}`, 'invalid 5', 'invalid null'],
  [`{${J},"method":1}`, 'invalid null', 'invalid null'],
  [`{${J},"foo":1}`, 'invalid null', 'invalid null'],
  ['{}', 'invalid null', 'invalid null'],
  [`{${J},"id":1,"result":{}}`, 'invalid null', 'invalid null'],
  [`{${J},"id":1,"error":{"code":1,"message":""}}`, 'invalid null', 'invalid null'],
  ['{"jsonrpc":"1.0","id":1,"result":{}}', 'invalid null', 'invalid null'],
  ['1', 'invalid null', 'invalid null'],
  ['"x"', 'invalid null', 'invalid null'],
  ['null', 'invalid null', 'invalid null'],
  ['true', 'invalid null', 'invalid null'],
  [`{${J},"id":1,"id":2,"method":"ping"}`, 'request 2', 'request 2'],
];

describe('one frame', () => {
  it.each(rules)('%s is alone: %s', (text, alone) => {
    expect(shape(single(text))).toBe(alone);
  });

  it.each(rules)('%s is in a batch: %s -> %s', (text, _, inBatch) => {
    expect(members(` [ ${text} ] `).map(shape)).toEqual([inBatch]);
  });

  it.each([
    '9007199254740993',
    '12345678901234567890123',
    '1e400',
    '1.0',
    '-0',
    '1E2',
    '1.5',
    '-3',
    '"é😀"',
    '"a\\"b"',
  ])('keeps the characters of the id %s', (id) => {
    for (const text of [`{"id":${id},"method":"m"}`, `{ "params":{"id":7},"method" : "m", "id" : ${id}\t}`]) {
      expect(shape(single(text))).toBe(`request ${id}`);
    }
  });

  it.each([
    [undefined, undefined],
    ['null', undefined],
    ['{"a":1}', { a: 1 }],
    ['[]', []],
    ['5', 5],
  ])('with params %s hands on %j, unjudged', (params, expected) => {
    const member = single(`{"id":1,"method":"m"${params === undefined ? '' : `,"params":${params}`}}`);
    expect(member.kind === 'request' && member.params).toEqual(expected);
  });

  it('is a request exactly when it has a text for a method and a text or number for an id', () => {
    fc.assert(
      fc.property(rawObject, (node) => {
        const member = single(node.raw);
        const isNamed = lastMember(node, 'method')?.raw.startsWith('"') === true;
        const id = lastMember(node, 'id');
        const expected = isNamed && (id === undefined || id.kind === 'scalar');
        expect(member.kind !== 'invalid').toBe(expected);
        if (member.kind === 'request') expect(member.rawId).toBe(id?.raw);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a batch', () => {
  it('judges each member on its own, in order', () => {
    expect(members('[1,null,{},[],"x",{"id":9,"method":"ping"},{"method":"n"}]').map(shape)).toEqual([
      ...Array.from({ length: 5 }, () => 'invalid null'),
      'request 9',
      'notification',
    ]);
  });

  it('runs nothing inside a nested array', () => {
    expect(members('[[{"id":1,"method":"ping"}],{"id":2,"method":"ping"}]').map(shape)).toEqual([
      'invalid null',
      'request 2',
    ]);
  });

  it.each(['[]', ' [ ] ', '\n[\t]\r'])('without members (%j) is one invalid request', (text) => {
    expect(parseFrame(text)).toMatchObject({ kind: 'refused', errorName: 'invalidRequest' });
  });
});

describe('a text that is no frame', () => {
  it.each([
    ...['', ' ', 'not json', '{', '{"id":1}{"id":2}', '[1,]', "{'id':1}", '{"id":01}', '[NaN]', 'Infinity', '// c\n{}'],
    ...['[{"id":1,"method":"ping"},{"jso', '{"id":1,"method":"ping"} x', '{"a":"\n"}', '\ufeff{}'],
  ])('is refused as a parse error: %j', (text) => {
    expect(parseFrame(text)).toMatchObject({ kind: 'refused', errorName: 'parse' });
  });

  it('never makes it throw, and is refused exactly where JSON.parse refuses it', () => {
    const noise = fc.string({ unit: fc.constantFrom(...'{}[]",:\\ \n-1eatrufn'), maxLength: 40 });
    fc.assert(
      fc.property(fc.oneof(noise, fc.string(), fc.json()), (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        const frame = parseFrame(text);
        expect(frame.kind === 'refused' && frame.errorName === 'parse').toBe(!isJson);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('the limits of a frame', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  it('are met by the deepest nesting allowed, which is then judged', () => {
    expect(members(nested(frameLimits.depth)).map(shape)).toEqual(['invalid null']);
  });

  it.each([
    ['alone', nested(frameLimits.depth + 1)],
    ['as an id', `{"id":${nested(frameLimits.depth)},"method":"ping"}`],
    ['as params', `{"id":1,"method":"ping","params":${nested(frameLimits.depth)}}`],
    ['unclosed', '['.repeat(1_000_000)],
  ])('refuse one level more %s', (_, text) => {
    expect(parseFrame(text)).toMatchObject({ kind: 'refused', errorName: 'parse' });
  });

  it('refuse more values than any allowed call has, as too large', () => {
    const values = (count: number) => `[${Array.from({ length: count - 1 }, () => '1').join(',')}]`;
    expect(parseFrame(values(frameLimits.values + 1))).toMatchObject({ kind: 'refused', errorName: 'tooLarge' });
    expect(parseFrame(values(frameLimits.values)).kind).toBe('batch');
  });

  it('leave room for the largest batch of text blocks', () => {
    const call = `{"id":1,"method":"embed","params":{"inputs":[${Array.from({ length: 2048 }, () => '{"type":"text","text":"a"}').join(',')}]}}`;
    expect(parseFrame(`[${Array.from({ length: 64 }, () => call).join(',')}]`).kind).toBe('batch');
  });
});
