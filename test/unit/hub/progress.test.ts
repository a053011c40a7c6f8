/** Owns the rules of what a person sees of a download, and of the pauses in it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { barProgress, drawBar } from '../../../src/cli/pull-bars.ts';
import { hubLimits } from '../../../src/model/hub/limits.ts';
import { nextPage } from '../../../src/model/hub/listing.ts';
import { showBytes } from '../../../src/model/hub/progress.ts';
import { backoffMs } from '../../../src/model/hub/retry.ts';

const file = { path: 'onnx/model.onnx', sizeBytes: 2000 };

describe('progress', () => {
  it('a bar shows the share that is here', () => {
    expect(drawBar(file, 500)).toBe('[######..................]  25 %  500 B of 2.0 kB  onnx/model.onnx');
    expect(drawBar(file, 2000)).toMatch(/^\[#{24}\] 100 %/u);
    expect(drawBar({ path: 'empty', sizeBytes: 0 }, 0)).toContain('100 %');
  });

  it('is drawn when the percentage changes, not with every piece', () => {
    const lines: string[] = [];
    const progress = barProgress((line) => lines.push(line));
    progress.onStart(file, 0);
    for (let bytes = 1; bytes <= 2000; bytes += 1) progress.onBytes(file, bytes);
    progress.onDone(file);
    expect(lines).toHaveLength(102);
  });

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [90_400_000, '90.4 MB'],
    [2_300_000_000, '2.3 GB'],
  ])('%s bytes are %s', (bytes, expected) => {
    expect(showBytes(bytes)).toBe(expected);
  });
});

describe('pauses between tries', () => {
  it('double up to the cap, and chance takes at most half away', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 64 }), fc.double({ min: 0, max: 1, noNaN: true }), (failures, chance) => {
        const ceiling = Math.min(hubLimits.maxBackoffMs, hubLimits.firstBackoffMs * 2 ** (failures - 1));
        const pause = backoffMs(failures, hubLimits, () => chance);
        expect(pause).toBeGreaterThanOrEqual(Math.floor(ceiling / 2));
        expect(pause).toBeLessThanOrEqual(ceiling);
      }),
    );
  });
});

describe('the next page of a listing', () => {
  const from = 'http://mirror:1/api/models/a/b/tree/c?recursive=true';
  it('is asked of the host that gave the first one', () => {
    const link = '<https://huggingface.co/api/models/a/b/tree/c?cursor=x>; rel="next"';
    expect(nextPage(link, from)).toBe('http://mirror:1/api/models/a/b/tree/c?cursor=x');
  });

  it.each([null, '', '<http://x/y>; rel="prev"', 'nonsense'])('%s means that there is none', (link) => {
    expect(nextPage(link, from)).toBeNull();
  });
});
