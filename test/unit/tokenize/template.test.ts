import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assemblePair, assembleSingle, deriveTemplates } from '../../../src/tokenize/template.ts';
import type { TemplateProbe } from '../../../src/tokenize/template.ts';

const bert: TemplateProbe = {
  first: [11, 12],
  second: [13],
  single: { ids: [101, 11, 12, 102], typeIds: [0, 0, 0, 0] },
  pair: { ids: [101, 11, 12, 102, 13, 102], typeIds: [0, 0, 0, 0, 1, 1] },
};
const roberta: TemplateProbe = {
  first: [11, 12],
  second: [13],
  single: { ids: [0, 11, 12, 2], typeIds: [0, 0, 0, 0] },
  pair: { ids: [0, 11, 12, 2, 2, 13, 2], typeIds: [0, 0, 0, 0, 0, 0, 0] },
};

function templatesOf(probe: TemplateProbe) {
  const templates = deriveTemplates(probe);
  if (templates === null) throw new Error('no template');
  return templates;
}

describe('templates from what the library answers', () => {
  it('BERT: one token before, one between, one behind, and segment 1 from the passage on', () => {
    const { single, pair } = templatesOf(bert);
    expect(assembleSingle(single, [7])).toEqual({ ids: Int32Array.of(101, 7, 102), typeIds: null });
    expect(assemblePair(pair, [7, 8], [9])).toEqual({
      ids: Int32Array.of(101, 7, 8, 102, 9, 102),
      typeIds: Uint8Array.of(0, 0, 0, 0, 1, 1),
    });
  });

  it('RoBERTa: two tokens between the texts, all in segment 0', () => {
    const { pair } = templatesOf(roberta);
    expect(pair.middle.ids).toEqual([2, 2]);
    expect(assemblePair(pair, [7], [8])).toEqual({ ids: Int32Array.of(0, 7, 2, 2, 8, 2), typeIds: null });
  });

  it('a model without special tokens gets none', () => {
    const plain = { ids: [11, 12, 13], typeIds: [0, 0, 1] };
    const { single, pair } = templatesOf({
      first: [11, 12],
      second: [13],
      single: { ids: [11, 12], typeIds: [0, 0] },
      pair: plain,
    });
    expect(assembleSingle(single, [5]).ids).toEqual(Int32Array.of(5));
    expect(assemblePair(pair, [5], [6])).toEqual({ ids: Int32Array.of(5, 6), typeIds: Uint8Array.of(0, 1) });
  });

  it('a model with a closing token only gets it once at the end', () => {
    const { single } = templatesOf({
      first: [11],
      second: [12],
      single: { ids: [11, 1], typeIds: [0, 0] },
      pair: { ids: [11, 1, 12, 1], typeIds: [0, 0, 0, 0] },
    });
    expect(assembleSingle(single, []).ids).toEqual(Int32Array.of(1));
    expect(assembleSingle(single, [4, 4]).ids).toEqual(Int32Array.of(4, 4, 1));
  });

  it('texts that look like the special tokens give no template', () => {
    expect(deriveTemplates({ ...bert, first: [], single: { ids: [101, 102], typeIds: [0, 0] } })).toBeNull();
    expect(deriveTemplates({ ...bert, first: [102], single: { ids: [102, 102], typeIds: [0, 0] } })).toBeNull();
    expect(deriveTemplates({ ...bert, second: [99] })).toBeNull();
  });

  it('segments follow the template whatever ids a text has, special ones included', () => {
    const { pair } = templatesOf(bert);
    const ids = fc.array(fc.constantFrom(0, 101, 102, 7));
    fc.assert(
      fc.property(ids, ids, (first, second) => {
        const { ids: all, typeIds } = assemblePair(pair, first, second);
        expect([...all]).toEqual([101, ...first, 102, ...second, 102]);
        expect([...(typeIds ?? [])]).toEqual([...all.keys()].map((index) => (index < first.length + 2 ? 0 : 1)));
      }),
    );
  });
});
