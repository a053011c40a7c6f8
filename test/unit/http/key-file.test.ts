import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maxKeys, parseKeyFile } from '../../../src/http/key-file.ts';

const entry = (key: string, name: string | null = null, limits = {}) => ({ key, name, limits });

describe('a file of keys', () => {
  it.each([
    ['k', [entry('k')]],
    ['\uFEFFk\r\n\r\n', [entry('k')]],
    ['# all of them\n  a  # the first\nb\n#c', [entry('a'), entry('b')]],
    ['web:k1\nbatch.job-2:k2', [entry('k1', 'web'), entry('k2', 'batch.job-2')]],
    ['k#1', [entry('k#1')]],
    ['YWJj+/==', [entry('YWJj+/==')]],
    [
      'web:k requestsPerSecond=10 requestBurst=20\tqueuedTokens=5000',
      [entry('k', 'web', { requestsPerSecond: 10, requestBurst: 20, queuedTokens: 5000 })],
    ],
    ['k requestsPerSecond=0', [entry('k', null, { requestsPerSecond: 0 })]],
  ])('%j is read', (text, entries) => {
    expect(parseKeyFile(text)).toEqual({ entries });
  });

  it.each([
    ['', /no key/],
    ['# only words\n\n', /no key/],
    ['good\n:k', /^line 2: .*name/],
    [`${'n'.repeat(65)}:k`, /^line 1: .*name/],
    ['a b:k', /^line 1: after the key/],
    ['web:', /^line 1: a key/],
    ['web:k:l', /^line 1: a key/],
    ['schlüssel', /^line 1: a key/],
    ['k requestsPerSecond=-1', /^line 1: after the key/],
    ['k requestsPerSecond=1.5', /^line 1: after the key/],
    ['k tokens=5', /^line 1: after the key/],
    ['k\nk', /same key/],
    ['a:k\na:l', /same name/],
    [Array.from({ length: maxKeys + 1 }, (_, index) => `k${String(index)}`).join('\n'), /more than/],
  ])('%j is refused as a whole', (text, problem) => {
    expect(parseKeyFile(text)).toEqual({ problems: [expect.stringMatching(problem)] });
  });

  it('is read or refused whatever it holds, and no problem repeats any of it', () => {
    const lines = fc.array(
      fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^\w{8,20}:?[^ ]{8,20}( \S{8,})?$/)),
    );
    fc.assert(
      fc.property(lines, (texts) => {
        const parsed = parseKeyFile(texts.join('\n'));
        if (!('problems' in parsed)) return;
        const told = parsed.problems.join('\n');
        for (const word of texts.flatMap((text) => text.split(/\s+/))) {
          if (word.length >= 8 && !/^[a-z]+$/i.test(word)) expect(told).not.toContain(word);
        }
      }),
    );
  });
});
