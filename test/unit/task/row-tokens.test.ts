import { describe, expect, it } from 'vitest';
import { plainTokenRows } from '../../../src/model/token-row-rules.ts';
import { rowTokensOf } from '../../../src/task/row-tokens.ts';
import { createServed } from './fakes.ts';

const served = createServed({});
const withRows = (rows: Partial<typeof plainTokenRows>) => ({
  ...served,
  manifest: { ...served.manifest, tokenRows: { ...plainTokenRows, ...rows } },
});

describe('what is said of the tokens behind rows', () => {
  it('names those without a row by kind', () => {
    const told = rowTokensOf({ ...served, documentSkipIds: new Set([7, 9]), querySkipIds: new Set([8]) });
    expect(told).toEqual({
      query: { skippedIds: [8], keepsFirstRow: true },
      document: { skippedIds: [7, 9], keepsFirstRow: true },
    });
  });

  it('says where the first token has no row', () => {
    expect(rowTokensOf(withRows({ keepsFirstRow: false }))?.document.keepsFirstRow).toBe(false);
  });

  it('names the marker of a kind, and what fills queries', () => {
    const tokenizer = {
      ...served.tokenizer,
      idsOf: ([token = '']: readonly string[]) => new Set([token.charCodeAt(0)]),
    };
    const rows = { queryMarker: 'Q', documentMarker: 'D', expansionToken: 'M', maxQueryTokens: 8 };
    const all = { skippedIds: [], keepsFirstRow: true };
    expect(rowTokensOf({ ...withRows(rows), tokenizer })).toEqual({
      query: { ...all, markerId: 81, fillId: 77 },
      document: { ...all, markerId: 68 },
    });
    expect(rowTokensOf({ ...withRows({ ...rows, minQueryTokens: 4 }), tokenizer })?.query.fillId).toBe(77);
  });

  it('is nothing where a prompt goes before a text', () => {
    const prompts = { ...served.manifest.prompts, query: 'query: ' };
    expect(rowTokensOf({ ...served, manifest: { ...served.manifest, prompts } })).toBeNull();
  });
});
