import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { readCallOptions, readStrict, readVectorForm } from '../../../src/rpc/options.ts';
import {
  readKind,
  readLenientObject,
  readOption,
  readOptionalBoolean,
  readOptionalCount,
  readOptionalObject,
  readOptionalString,
  readParams,
  readQuery,
  readTexts,
} from '../../../src/rpc/params.ts';

const of = (value: object) => new Map<string, unknown>(Object.entries(value));
/** What a refusal says: `name field`, or null. */
function refusal(read: () => unknown): string | null {
  try {
    read();
    return null;
  } catch (error) {
    if (error instanceof ServiceError) return `${error.errorName} ${error.data.field}`;
    throw error;
  }
}
const notAnObject = [[], 'x', 1, true];

describe('params', () => {
  it('absent and null are no members', () => {
    const read = [undefined, null, {}].map((params) => readParams(params).get('inputs'));
    expect(read).toEqual([undefined, undefined, undefined]);
  });

  it.each(notAnObject)('of another type (%j) are refused', (params) => {
    expect(refusal(() => readParams(params))).toBe('invalidParams params');
  });

  it('have own members only: no inherited name is ever read', () => {
    const members = readParams(JSON.parse('{"__proto__":{"inputs":["a"]},"a":1}'));
    expect(['inputs', 'constructor', 'toString'].map((name) => members.get(name))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(({} as Record<string, unknown>)['inputs']).toBeUndefined();
  });

  it('have an optional object that is refused when it is none, and a lenient one that counts as absent', () => {
    for (const value of notAnObject) {
      expect(refusal(() => readOptionalObject(value, 'x-trivec'))).toBe('invalidParams x-trivec');
      expect(readLenientObject(value).get('length')).toBeUndefined();
    }
    const read = [readOptionalObject(null, 'x'), readLenientObject(null), readLenientObject({ a: 1 })];
    expect(read.map((members) => members.get('a'))).toEqual([undefined, undefined, 1]);
  });
});

describe('optional members', () => {
  it.each([
    [1, 1],
    [2.0, 2],
    [1e1, 10],
    [1e30, 1e30],
    [null, null],
    [undefined, null],
  ])('a count of %j is %j', (value, expected) => {
    expect(readOptionalCount(of({ topN: value }), 'topN')).toBe(expected);
  });

  it.each([0, -1, 1.5, '2', true, false, [], {}, Infinity, Number.NaN])('a count of %j is refused', (value) => {
    expect(refusal(() => readOptionalCount(of({ topN: value }), 'topN'))).toBe('invalidParams topN');
  });

  it('a count is whole, at least 1 and exact', () => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        const isGood = Number.isInteger(value) && value >= 1;
        expect(refusal(() => readOptionalCount(of({ n: value }), 'n')) === null).toBe(isGood);
      }),
    );
  });

  it.each(['true', 1, [], {}])('a truth value of %j is refused', (value) => {
    expect(refusal(() => readOptionalBoolean(of({ strict: value }), 'strict'))).toBe('invalidParams strict');
  });

  it.each([1, true, [], {}])('a text of %j is refused', (value) => {
    expect(refusal(() => readOptionalString(of({ model: value }), 'model'))).toBe('invalidParams model');
  });

  it('null is the same as absent', () => {
    const members = of({ a: null });
    expect([readOptionalBoolean(members, 'a'), readOptionalString(members, 'a'), readKind(of({ kind: null }))]).toEqual(
      [null, null, null],
    );
  });

  it.each(['passage', 'Query', '', ' query', 5, true, []])('a kind of %j is refused', (kind) => {
    expect(refusal(() => readKind(of({ kind })))).toBe('invalidParams kind');
  });
});

describe('an option with advertised values', () => {
  const read = (value: unknown, isStrict?: boolean) =>
    readOption(of({ encoding: value }), 'encoding', ['json', 'f32-base64'], isStrict === undefined ? {} : { isStrict });

  it('is the first value where it is absent or null', () => {
    expect([read(undefined), read(null)]).toEqual([
      { value: 'json', replaced: null },
      { value: 'json', replaced: null },
    ]);
  });

  it.each(['F32-BASE64', 'base64', '', ' json', 'toString'])(
    'is refused with its value and the field (%j)',
    (value) => {
      expect(() => read(value)).toThrow(
        expect.objectContaining({
          errorName: 'unsupportedOption',
          data: { option: value, field: 'encoding', supported: ['json', 'f32-base64'] },
        }),
      );
    },
  );

  it('of another type is a defect, not an unsupported value', () => {
    expect(refusal(() => read(5))).toBe('invalidParams encoding');
    expect(refusal(() => read(5, false))).toBe('invalidParams encoding');
  });

  it('is replaced by the default only where the caller is not strict', () => {
    expect(read('x', false)).toEqual({ value: 'json', replaced: 'x' });
    expect(read('f32-base64', false)).toEqual({ value: 'f32-base64', replaced: null });
  });
});

describe('a list of texts', () => {
  const names = ['inputs', 'texts'] as const;
  const read = (params: object) => readTexts(of(params), [...names], 'inputs');
  const image = { type: 'image', mimeType: 'image/png', uri: 'http://127.0.0.1:1/x' };

  it.each([
    [{ inputs: ['a'] }, ['a'], 'inputs'],
    [{ texts: ['a'] }, ['a'], 'texts'],
    [{ inputs: ['a'], texts: ['b'] }, ['a'], 'inputs'],
    [{ inputs: null, texts: ['b'] }, ['b'], 'texts'],
    [{ inputs: [], texts: ['b'] }, [], 'inputs'],
    [{ inputs: ['', ' '] }, ['', ' '], 'inputs'],
    [{ inputs: [{ type: 'text', text: 'a', mimeType: 'x', more: 1 }, 'b'] }, ['a', 'b'], 'inputs'],
  ])('%j is %j under %s', (params, texts, name) => {
    expect(read(params)).toMatchObject({ texts, name });
  });

  it.each([
    [{}, 'invalidParams inputs'],
    [{ inputs: null }, 'invalidParams inputs'],
    [{ inputs: 'cat' }, 'invalidParams inputs'],
    [{ texts: 'cat' }, 'invalidParams texts'],
    [{ inputs: { 0: 'a' } }, 'invalidParams inputs'],
    [{ inputs: ['a', 1, 'c'] }, 'invalidParams inputs[1]'],
    [{ inputs: [null] }, 'invalidParams inputs[0]'],
    [{ inputs: [['a']] }, 'invalidParams inputs[0]'],
    [{ inputs: [[57668, 53901]] }, 'invalidParams inputs[0]'],
    [{ texts: ['a', true] }, 'invalidParams texts[1]'],
    [{ inputs: [{ text: 'a' }] }, 'invalidParams inputs[0].type'],
    [{ inputs: [{ type: 5, text: 'a' }] }, 'invalidParams inputs[0].type'],
    [{ inputs: [{ type: 'text' }] }, 'invalidParams inputs[0].text'],
    [{ inputs: [{ type: 'text', text: null }] }, 'invalidParams inputs[0].text'],
    [{ inputs: ['a', image] }, 'unsupportedOption inputs[1].type'],
    [{ inputs: [{ type: 'video' }] }, 'unsupportedOption inputs[0].type'],
  ])('%j is refused: %s', (params, expected) => {
    expect(refusal(() => read(params))).toBe(expected);
  });

  it('tells that token ids are not accepted', () => {
    for (const inputs of [[15339, 1917], [[57668, 53901]]]) {
      expect(() => read({ inputs })).toThrow(/token ids are not accepted/);
    }
  });

  it('is refused at its first bad element, wherever it stands', () => {
    const bad = fc.constantFrom<unknown>(1, null, true, [], ['a'], {}, { text: 'a' });
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.oneof(fc.string(), bad)), bad, (before, after, element) => {
        const field = `inputs[${before.length}]`;
        expect(refusal(() => read({ inputs: [...before, element, ...after] }))).toMatch(
          new RegExp(`^invalidParams ${field.replace(/[[\]]/g, '\\$&')}(\\.type)?$`),
        );
      }),
    );
  });

  it('is counted against its limit with what came', () => {
    const texts = read({ inputs: ['a', 'b', 'c'] });
    expect(() => {
      texts.checkCount(3);
    }).not.toThrow();
    expect(() => {
      texts.checkCount(2);
    }).toThrow(expect.objectContaining({ data: { field: 'inputs', limit: 2, received: 3 } }));
  });

  it('never shows up in a message', () => {
    for (const inputs of [['geheim', 1], [{ type: 'geheim' }], [{ geheim: 1 }], 'geheim']) {
      let message = '';
      try {
        read({ inputs });
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).not.toBe('');
      expect(message).not.toContain('geheim');
    }
  });
});

describe('a query', () => {
  const block = { type: 'text', text: 'b' };

  it.each([
    ['a', 'a'],
    ['', ''],
    [block, 'b'],
    [[block, { type: 'text', text: 'c' }], 'b\nc'],
  ])('%j is %j', (query, expected) => {
    expect(readQuery(of({ query }))).toBe(expected);
  });

  it.each([
    [undefined, 'invalidParams query'],
    [null, 'invalidParams query'],
    [1, 'invalidParams query'],
    [{ text: 'a' }, 'invalidParams query.type'],
    [[block, 5], 'invalidParams query[1]'],
    [{ type: 'image' }, 'unsupportedOption query.type'],
  ])('%j is refused: %s', (query, expected) => {
    expect(refusal(() => readQuery(of({ query })))).toBe(expected);
  });
});

describe('the vendor options', () => {
  const read = (options: unknown) => readCallOptions(of({ 'x-trivec': options }));
  const defaults = { mayTruncate: true, dimensions: null, lane: null, output: null, model: null };

  it.each([
    [undefined, defaults],
    [null, defaults],
    [{}, defaults],
    [{ truncate: null, dimensions: null, priority: null, output: null }, defaults],
    [{ whatever: 1 }, defaults],
    [{ model: 'x' }, { ...defaults, model: 'x' }],
    [{ truncate: false }, { ...defaults, mayTruncate: false }],
    [{ dimensions: 256 }, { ...defaults, dimensions: 256 }],
    [{ priority: 'interactive' }, { ...defaults, lane: 'interactive' }],
    [{ priority: 'bulk' }, { ...defaults, lane: 'bulk' }],
    [{ output: 'float32' }, defaults],
    [{ output: 'int8' }, { ...defaults, output: 'int8' }],
    [{ output: 'ubinary' }, { ...defaults, output: 'ubinary' }],
  ])('%j mean %j', (options, expected) => {
    expect(read(options)).toEqual(expected);
  });

  it.each([
    [[], 'invalidParams x-trivec'],
    ['x', 'invalidParams x-trivec'],
    [{ truncate: 'no' }, 'invalidParams x-trivec.truncate'],
    [{ dimensions: 0 }, 'invalidParams x-trivec.dimensions'],
    [{ priority: 5 }, 'invalidParams x-trivec.priority'],
    [{ priority: 'Bulk' }, 'unsupportedOption x-trivec.priority'],
    [{ output: true }, 'invalidParams x-trivec.output'],
    [{ output: 'int4' }, 'unsupportedOption x-trivec.output'],
    [{ output: 'int4', priority: 'x', dimensions: -1 }, 'invalidParams x-trivec.dimensions'],
    [{ output: 'int4', priority: 'x', truncate: 1 }, 'invalidParams x-trivec.truncate'],
  ])('%j are refused: %s', (options, expected) => {
    expect(refusal(() => read(options))).toBe(expected);
  });
});

describe('the form of a vector', () => {
  it.each([
    [{}, null, 'json', []],
    [{ encoding: 'f32-base64' }, null, 'f32-base64', []],
    [{ encoding: 'x', strict: false }, null, 'json', ['encoding: json was used instead']],
    [{ encoding: 'json' }, 'int8', 'json', []],
  ] as const)('of %j with the output %s is %s, noted %j', (params, output, encoding, notes) => {
    expect(readVectorForm(of(params), output)).toEqual({ form: { encoding, output }, notes });
  });

  it('never mixes integers with base64', () => {
    expect(refusal(() => readVectorForm(of({ encoding: 'f32-base64' }), 'int8'))).toBe(
      'unsupportedOption x-trivec.output',
    );
  });

  it('is strict unless the caller says otherwise', () => {
    expect([readStrict(of({})), readStrict(of({ strict: null })), readStrict(of({ strict: false }))]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
