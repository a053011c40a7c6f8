import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanFrame as scanWithin, type RawTokens } from '../../../src/rpc/raw-tokens.ts';
import { depthOf, lastMember, rawNode, rawObject, space, valuesOf, type RawNode } from './raw-json.ts';

const rawOf = (node: RawNode | undefined) => (node?.kind === 'scalar' ? node.raw : undefined);

function expectedTokens(node: RawNode): RawTokens {
  const params = lastMember(node, 'params');
  return {
    id: rawOf(lastMember(node, 'id')),
    paramsId: rawOf(lastMember(params, 'id')),
    nonce: rawOf(lastMember(params, 'nonce')),
    progressToken: rawOf(lastMember(lastMember(params, '_meta'), 'progressToken')),
  };
}

const unbounded = { depth: Infinity, values: Infinity, names: Infinity, literal: Infinity };
const scanFrame = (text: string) => scanWithin(text, unbounded);

describe('scan of a frame', () => {
  it('keeps the characters of the last id, params.id, nonce and progressToken, however the frame is written', () => {
    fc.assert(
      fc.property(rawObject, space, space, (node, before, after) => {
        const text = before + node.raw + after;
        JSON.parse(text);
        expect(scanFrame(text).members).toEqual([expectedTokens(node)]);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['{"_meta":{"progressToken":1},"_meta":{}}', undefined],
    ['{"_meta":{"progressToken":1},"_meta":5}', undefined],
    ['{"_meta":{"progressToken":1},"_meta":{"progressToken":2}}', '2'],
    ['{"_meta":{"progressToken":1,"progressToken":[]}}', undefined],
    ['{"_meta":{"progressToken":1},"a":{"_meta":{"progressToken":3}}}', '1'],
  ])('takes the token of the params %s to be %s', (params, token) => {
    expect(scanFrame(`{"params":${params}}`).members[0]?.progressToken).toBe(token);
    expect(scanFrame(`{"params":{"_meta":{"progressToken":9}},"params":${params}}`).members[0]?.progressToken).toBe(
      token,
    );
  });

  it('gives one entry per element of an array, empty ones for elements that are no objects', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(rawObject, rawNode), { maxLength: 6 }), space, (nodes, around) => {
        const text = `${around}[${nodes.map(({ raw }) => `${around}${raw}`).join(`${around},`)}${around}]`;
        JSON.parse(text);
        expect(scanFrame(text).members).toEqual(nodes.map(expectedTokens));
      }),
      { numRuns: 1000 },
    );
  });

  it('counts the values and the depth of any JSON text', () => {
    fc.assert(
      fc.property(fc.oneof(rawObject, rawNode), (node) => {
        const { depth, values } = scanFrame(node.raw);
        expect({ depth, values }).toEqual({ depth: depthOf(node), values: valuesOf(node) });
      }),
      { numRuns: 1000 },
    );
  });

  it('agrees with JSON.parse on texts that JSON.stringify wrote', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (id, params) => {
        const text = JSON.stringify({ a: params, id, params }, null, 2);
        const [tokens] = scanFrame(text).members;
        const isScalar = typeof id === 'string' || typeof id === 'number';
        expect(tokens?.id === undefined ? undefined : JSON.parse(tokens.id)).toEqual(
          isScalar ? JSON.parse(JSON.stringify(id)) : undefined,
        );
      }),
    );
  });

  it('ends on any text, with no more values than characters', () => {
    const noise = fc.string({ unit: fc.constantFrom(...'{}[]",:\\ \n-1eatrufn'), maxLength: 60 });
    fc.assert(
      fc.property(fc.oneof(noise, fc.string({ unit: 'binary' })), (text) => {
        expect(scanFrame(text).values).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: 3000 },
    );
  });

  it('ends on every prefix of a frame', () => {
    fc.assert(
      fc.property(rawObject, fc.nat(), (node, cut) => {
        scanFrame(node.raw.slice(0, cut % (node.raw.length + 1)));
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['of lists', '['.repeat(1e6), 1e6],
    ['of closed lists', '['.repeat(1e6) + ']'.repeat(1e6), 1e6],
    ['of objects', '{"id":'.repeat(1e6), 1e6],
    ['in params', `{"params":${'['.repeat(1e6)}`, 1e6 + 1],
    ['in an id', `{"id":${'[1,'.repeat(1e6)}`, 1e6 + 1],
  ])('counts a million levels %s without recursion', (_, text, depth) => {
    expect(scanFrame(text).depth).toBe(depth);
  });

  it('counts what follows the frame, because it would be parsed too', () => {
    expect(scanFrame('{} [1,2,3]').values).toBe(5);
    expect(scanFrame('1 [[[[').depth).toBe(4);
  });

  it('takes no time worth speaking of for a text of quotes and backslashes', () => {
    expect(scanFrame(`{"id":"${'\\\\'.repeat(1e6)}"}`).members[0]?.id).toHaveLength(2e6 + 2);
    expect(scanFrame(`{"id":"${'\\"'.repeat(1e6)}"}`).members[0]?.id).toHaveLength(2e6 + 2);
  });
});

describe('the limits of a scan', () => {
  const limits = { depth: 10, values: 100, names: 50, literal: 20 };

  it.each([
    ['depth', '['.repeat(1000)],
    ['values', `[${'1,'.repeat(1000)}1]`],
    ['values', `[${'{},'.repeat(1000)}1]`],
    ['literal', `{"id":${'9'.repeat(21)}}`],
    ['names', `{${Array.from({ length: 60 }, (_, index) => `"k${index}":0`).join(',')}}`],
    ['names', `{"params":{"x":{${Array.from({ length: 60 }, (_, index) => `"k${index}":0`).join(',')}}}}`],
  ] as const)('end it at once when %s is over', (excess, text) => {
    const scan = scanWithin(text, limits);
    expect(scan.excess).toBe(excess);
    expect(scan.members.length).toBeLessThanOrEqual(limits.values + 1);
    expect(scan.values).toBeLessThanOrEqual(limits.values + 1);
  });

  it('are not met by what stays within them', () => {
    expect(scanWithin('[{"id":1},{"id":2}]', limits).excess).toBeNull();
  });
});
