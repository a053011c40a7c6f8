import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Progress } from '../../../src/client/options.ts';
import { createProgressCount } from '../../../src/client/progress.ts';
import { createFakeServer } from './fake-server.ts';

describe('progress', () => {
  it('never goes back, and its last report is exactly the whole list', () => {
    const request = fc.record({
      texts: fc.integer({ min: 1, max: 700 }),
      told: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }),
      failsFirst: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 10 }), (requests) => {
        const totalCount = requests.reduce((sum, { texts }) => sum + texts, 0);
        const reports: Progress[] = [];
        const count = createProgressCount(totalCount, (progress) => reports.push(progress));
        const underWay = requests.map(({ texts, told, failsFirst }) => {
          const first = count.ofRequest(texts);
          for (const progress of told) first.report(progress);
          if (!failsFirst) return first;
          first.drop();
          return count.ofRequest(texts);
        });
        for (const one of underWay) one.finish();
        expect(reports.at(-1)).toEqual({ progress: 1, doneCount: totalCount, totalCount });
        for (const [index, { progress, doneCount }] of reports.entries()) {
          expect(progress).toBeGreaterThanOrEqual(reports[index - 1]?.progress ?? 0);
          expect(doneCount).toBeGreaterThanOrEqual(reports[index - 1]?.doneCount ?? 0);
          expect(Number.isInteger(doneCount)).toBe(true);
        }
      }),
    );
  });

  it('is not moved by a request that is over', () => {
    const reports: number[] = [];
    const count = createProgressCount(4, ({ progress }) => reports.push(progress));
    const [first, second] = [count.ofRequest(2), count.ofRequest(2)];
    first.finish();
    first.report(0.5);
    first.finish();
    second.drop();
    second.report(1);
    expect(reports).toEqual([0.5]);
  });

  it('of a call that was cut into requests ends at its whole list', async () => {
    const client = await createFakeServer().connect();
    const reports: Progress[] = [];
    const texts = Array.from({ length: 333 }, (_, index) => String(index));
    await client.embed(texts, { onProgress: (progress) => reports.push(progress) });
    expect(reports.at(-1)).toEqual({ progress: 1, doneCount: 333, totalCount: 333 });
  });
});
