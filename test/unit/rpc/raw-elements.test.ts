import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rawElementsOf } from '../../../src/rpc/raw-tokens.ts';

describe('the raw text of the elements of a list', () => {
  it('is, for any JSON however it is written, the text of each element and nothing around it', () => {
    const anything = fc.jsonValue({ depthSize: 'medium', stringUnit: 'binary' });
    const given = fc.record({ list: fc.array(anything), before: anything, behind: anything });
    fc.assert(
      fc.property(given, fc.constantFrom(undefined, 1, '\t', '\n\r '), ({ list, before, behind }, indent) => {
        const text = JSON.stringify({ before, list, behind: [behind] }, null, indent);
        const raw = rawElementsOf(` ${text}\n`, 'list');
        // As the text has it: JSON knows no -0.
        const written = (JSON.parse(text) as { readonly list: unknown }).list;
        expect(raw.map((each) => JSON.parse(each) as unknown)).toEqual(written);
        for (const each of raw) expect(each).toBe(each.trim());
      }),
    );
  });

  it.each([
    ['{"a":[1],"a":[2,3]}', ['2', '3']],
    ['{"\\u0061":[ 1e400 , -0 ]}', ['1e400', '-0']],
    ['{"b":{"a":[1]},"c":["a",[1]]}', []],
    ['{"a":{"b":[1]}}', []],
    ['{"a":[1],"a":2}', []],
    ['{"a":[]}', []],
    ['{}', []],
  ])('of the member a of %s is %j', (text, expected) => {
    expect(rawElementsOf(text, 'a')).toEqual(expected);
  });
});
