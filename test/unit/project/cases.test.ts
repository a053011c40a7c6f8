/** Owns the check that every failure which users of comparable servers met has a test that states its rule. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The tables, and the cases of each by their letter: inputs, company, values, reranks; forms, load, devices, HTTP, frames. */
const tables = {
  'test/cases/a-to-d.json': {
    A: [1, 3, 5, 6, 8, 9, 11, 12, 13, 16, 17, 18, 20, 21, 23, 24],
    B: [4, 6, 7, 9, 10, 12, 14, 16, 17],
    C: [1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 15, 16, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28],
    D: [1, 2, 3, 4, 6, 8, 10, 11, 12, 14, 15, 16, 19, 21],
  },
  'test/cases/e-to-z.json': {
    C: [14],
    E: [1, 2, 3, 5, 7, 8, 9, 11, 13, 14],
    F: [1, 3, 5, 6, 7, 8, 10, 11, 12, 14, 19, 20],
    G: [2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14],
    H: [1, 3, 5, 6, 7, 8],
    I: [1, 4, 6, 9, 10, 11, 13, 14, 19],
  },
} as const;

interface NamedTest {
  readonly file: string;
  /** The title of a test as it stands in the file, or a part of it that no other title has. */
  readonly name: string;
}

interface Case {
  readonly id: string;
  readonly rule: string;
  readonly tests: readonly NamedTest[];
}

const idsOf = (sections: Readonly<Record<string, readonly number[]>>): string[] =>
  Object.entries(sections).flatMap(([letter, numbers]) => numbers.map((number) => `${letter}${number}`));

/** The cases of a table; none where it is not there, so that all of its cases are told to be missing. */
function readTable(path: string): Case[] {
  if (!existsSync(root + path)) return [];
  const table = JSON.parse(readFileSync(root + path, 'utf8')) as Record<string, Omit<Case, 'id'>>;
  return Object.entries(table).map(([id, one]) => ({ id, ...one }));
}

const cases = Object.keys(tables).flatMap(readTable);
const named = cases.flatMap(({ id, tests }) => tests.map((test) => ({ id, ...test })));

/** Texts that stand first among the arguments of a call: the titles of tests are among them. */
function titlesOf(file: string): string[] {
  const source = existsSync(root + file) ? readFileSync(root + file, 'utf8') : '';
  const calls = source.matchAll(/\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1\s*,/gu);
  return [...new Set([...calls].map(([, , title = '']) => title.replaceAll(/\\(['"`])/gu, '$1')))];
}

/** Whether a file has one test of that title, or no more than one title of which it is a part. */
function hasTest({ file, name }: NamedTest): boolean {
  const titles = titlesOf(file);
  return titles.includes(name) || (name.length > 0 && titles.filter((title) => title.includes(name)).length === 1);
}

describe('the cases that users met', () => {
  it.each(Object.entries(tables))('%s has each of its cases, and no other', (path, sections) => {
    const found = readTable(path).map(({ id }) => id);
    expect(found.toSorted()).toEqual(idsOf(sections).toSorted());
  });

  it('are 112 in all, none of them twice', () => {
    expect(new Set(Object.values(tables).flatMap(idsOf)).size).toBe(112);
  });

  it('each have a rule of one sentence, and a test that states it', () => {
    const incomplete = cases.filter(({ rule, tests }) => !/^[A-Z][^\n]*\.$/u.test(rule) || tests.length === 0);
    expect(incomplete.map(({ id }) => id)).toEqual([]);
  });

  it('name tests that exist', () => {
    expect(named.filter((test) => !test.file.endsWith('.test.ts') || !hasTest(test))).toEqual([]);
  });

  it('name no test of a file that leaves tests out', () => {
    const leavesOut = /\b(?:it|test|describe)(?:\.\w+)*\.(?:skip|todo|only)\b/u;
    const files = new Set(named.map(({ file }) => file));
    const sources = [...files].filter((file) => existsSync(root + file));
    expect(sources.filter((file) => leavesOut.test(readFileSync(root + file, 'utf8')))).toEqual([]);
  });
});

describe('the check of a title', () => {
  it('finds one that is there, also in part, and none that is not', () => {
    const file = 'test/unit/project/cases.test.ts';
    expect(hasTest({ file, name: 'finds one that is there, also in part, and none that is not' })).toBe(true);
    expect(hasTest({ file, name: 'also in part' })).toBe(true);
    expect(hasTest({ file, name: 'that' })).toBe(false);
    expect(hasTest({ file, name: '' })).toBe(false);
    expect(hasTest({ file: 'test/no-such-file.test.ts', name: 'also in part' })).toBe(false);
  });
});
