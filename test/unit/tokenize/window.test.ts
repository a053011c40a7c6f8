import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  firstWindowEnd,
  isWindowEnough,
  nextWindowEnd,
  windowMarginTokens,
  windowText,
} from '../../../src/tokenize/window.ts';
import { longText } from './minilm.ts';

describe('window of a long text', () => {
  it('a short text is taken whole', () => {
    expect(firstWindowEnd('hello world', 254)).toBe(11);
    expect(firstWindowEnd('', 254)).toBe(0);
  });

  it('a long text is cut at white space, which stays outside', () => {
    const text = 'word '.repeat(100_000);
    const end = firstWindowEnd(text, 254);
    expect(end).toBeLessThan(4_000);
    expect(text[end]).toBe(' ');
    expect(text[end - 1]).toBe('d');
  });

  it('a window that would end inside a word reaches to the end of the word', () => {
    const text = 'b'.repeat(60).concat(' ').repeat(10_000);
    const end = firstWindowEnd(text, 254);
    expect(end).toBeLessThan(text.length);
    expect(end % 61).toBe(60);
  });

  it('text without white space is cut where it has given tokens enough', () => {
    const end = firstWindowEnd('\u4e2d'.repeat(1_000_000), 254);
    expect(end).toBeGreaterThan(254 + windowMarginTokens);
    expect(end).toBeLessThan(1_000);
  });

  it('blanks count nothing: a window reaches over them to the tokens behind', () => {
    const text = `${' '.repeat(1_000_000)}${'word '.repeat(100_000)}`;
    const end = firstWindowEnd(text, 254);
    expect(end).toBeGreaterThan(1_000_000 + 5 * (254 + windowMarginTokens));
    expect(end).toBeLessThan(1_010_000);
  });

  it('a window always moves on, ends inside the text, and never between the halves of a surrogate pair', () => {
    fc.assert(
      fc.property(longText, fc.integer({ min: 1, max: 300 }), (text, maxIds) => {
        let end = firstWindowEnd(text, maxIds);
        for (let attempts = 1; end < text.length; attempts++) {
          const isInsidePair = /[\ud800-\udbff]$/.test(text.slice(0, end)) && /^[\udc00-\udfff]/.test(text.slice(end));
          expect(isInsidePair).toBe(false);
          const next = nextWindowEnd(text, end, maxIds, attempts);
          expect(next).toBeGreaterThan(end);
          end = next;
        }
        expect(end).toBe(text.length);
      }),
      { numRuns: 50 },
    );
  });

  it('one attempt grows by a bounded number of characters and of tokens, however many came before', () => {
    expect(nextWindowEnd(' '.repeat(20_000_000), 1_000, 254, 12)).toBeLessThan(1_100_000);
    expect(nextWindowEnd('a '.repeat(2_000_000), 1_000, 254, 12)).toBeLessThan(600_000);
  });

  it('a run that gave few tokens for each character is passed in one attempt, be it blanks, letters or one sign', () => {
    for (const unit of [' ', ' \n', 'a', 'aB7', '\u0301', '\f', '!']) {
      const run = unit.repeat(4_000_000 / unit.length);
      const end = nextWindowEnd(`${run}${' word'.repeat(100_000)}`, 100_000, 254, 1);
      expect(end).toBeGreaterThanOrEqual(run.length);
      expect(end).toBeLessThan(run.length + 20_000);
    }
  });

  it('a run too short to tell how many tokens it gives is passed in steps', () => {
    const text = `${' '.repeat(70_000)}${'a'.repeat(4_000_000)}`;
    expect(nextWindowEnd(text, 100_000, 254, 1)).toBeLessThan(300_000);
    expect(nextWindowEnd(text, 10_000, 254, 1)).toBeLessThan(300_000);
  });

  it('the prefixes of a text that is sparse all through are together at most twice as long as the text, and a step', () => {
    for (const unit of [' ', 'a', '!', `${' '.repeat(99)}\f`, `${'a'.repeat(99)} `]) {
      const text = unit.repeat(8_000_000 / unit.length);
      let end = firstWindowEnd(text, 254);
      let characters = end;
      for (let attempts = 1; end < text.length; attempts++) {
        end = nextWindowEnd(text, end, 254, attempts);
        characters += end;
      }
      expect(characters).toBeLessThan(2 * text.length + 1_100_000);
    }
  });

  it('a window is enough when it is the whole text, or gives more tokens than are kept and the margin', () => {
    expect(isWindowEnough('ab', 2, 0, 254)).toBe(true);
    expect(isWindowEnough('ab cd', 2, 254 + 128, 254)).toBe(false);
    expect(isWindowEnough('ab cd', 2, 254 + 129, 254)).toBe(true);
  });

  it('from the end a window is cut at white space, which stays outside, and holds the last words', () => {
    const text = 'word '.repeat(100_000).trimEnd();
    const end = firstWindowEnd(text, 254, 'end');
    expect(end).toBeLessThan(4_000);
    expect(windowText(text, end, 'end')).toMatch(/^word .* word$/u);
    expect(text.endsWith(windowText(text, end, 'end'))).toBe(true);
    expect(windowText(text, nextWindowEnd(text, end, 254, 1, 'end'), 'end').length).toBeGreaterThan(end);
  });

  it('from the end, too, no pair is cut in two', () => {
    for (const text of ['\u{1f600}'.repeat(10_000), `a${'\u{1f600}'.repeat(10_000)}`]) {
      const end = firstWindowEnd(text, 254, 'end');
      expect(end).toBeLessThan(text.length);
      expect(windowText(text, end, 'end')).toBe('\u{1f600}'.repeat(end / 2));
    }
  });

  it('lone halves of surrogate pairs become U+FFFD and whole pairs stay', () => {
    expect(windowText('hi \ud83d', 4)).toBe('hi \ufffd');
    expect(windowText('\ude00\u{1f600}', 3)).toBe('\ufffd\u{1f600}');
  });
});
