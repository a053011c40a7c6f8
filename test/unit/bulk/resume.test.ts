import { copyFileSync, existsSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { runBulk } from '../../../src/bulk/embed.ts';
import { workPaths } from '../../../src/bulk/work/paths.ts';
import type { BulkPlan } from '../../../src/bulk/embed.ts';
import { fakeSource, never, openPlace, planOf, silent, type Place } from './fakes.ts';

let place: Place;
beforeEach(() => (place = openPlace()));
afterEach(() => {
  place.remove();
});

const rowCount = 1100;
const lineOf = (row: number): string =>
  row % 97 === 13 ? '{"bad":1}' : JSON.stringify({ id: row, text: `text ${row}` });
const input = (): string =>
  place.write('in.jsonl', Array.from({ length: rowCount }, (_, row) => `${lineOf(row)}\n`).join(''));

const changes: Partial<BulkPlan> = { fields: { text: 'text', id: 'id' }, skipsBad: true };
const run = async (path: string, out: string, more: Partial<BulkPlan> = {}, source = fakeSource()) =>
  runBulk(await planOf(path, out, { ...changes, ...more }), source, silent, never);

describe('the chunks of a run', () => {
  it('begin small, so that no device waits for a whole one, and grow to their limit', async () => {
    const source = fakeSource();
    const sizes: number[] = [];
    const embed: typeof source.embed = (texts, signal) => {
      sizes.push(texts.length);
      return source.embed(texts, signal);
    };
    await run(input(), place.path('grown.jsonl'), {}, { ...source, embed });
    expect(sizes.slice(0, 6)).toEqual([16, 32, 64, 128, 256, 256]);
  });
});

describe('a run that ended early', () => {
  it('at any byte of its files is gone on with: no row is lost or doubled', { timeout: 120_000 }, async () => {
    const path = input();
    const undisturbed = place.path('whole.jsonl');
    await run(path, undisturbed);
    const wanted = readFileSync(undisturbed);
    const skipped = readFileSync(workPaths(undisturbed).skipped);

    // The files of a run as they are just before its end.
    const begun = place.path('begun.jsonl');
    await expect(run(path, begun, {}, fakeSource('dense', { failsAfter: 6 }))).rejects.toThrow('told to fail');
    const { work, journal } = workPaths(begun);
    const sizes = [readFileSync(work).length, readFileSync(journal).length] as const;
    expect(sizes[0]).toBeGreaterThan(20_000);

    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: sizes[0] }),
        fc.integer({ min: 0, max: sizes[1] }),
        fc.boolean(),
        async (workBytes, journalBytes, hasJunk) => {
          const out = place.path('again.jsonl');
          const paths = workPaths(out);
          for (const file of [out, paths.work, paths.journal, paths.skipped]) rmSync(file, { force: true });
          copyFileSync(work, paths.work);
          copyFileSync(journal, paths.journal);
          truncateSync(paths.work, workBytes);
          truncateSync(paths.journal, journalBytes);
          if (hasJunk) writeFileSync(paths.journal, Buffer.alloc(37), { flag: 'a' });
          const source = fakeSource();
          const result = await run(path, out, {}, source);
          expect(readFileSync(out).equals(wanted)).toBe(true);
          expect(readFileSync(paths.skipped).equals(skipped)).toBe(true);
          expect(result.rows + result.badRows).toBe(rowCount);
          expect(new Set(source.asked).size).toBe(source.asked.length);
          expect([paths.work, paths.built, paths.lock].filter((file) => existsSync(file))).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('computes nothing again that was recorded', async () => {
    const path = input();
    const out = place.path('out.jsonl');
    const first = fakeSource('dense', { failsAfter: 2 });
    await expect(run(path, out, {}, first)).rejects.toThrow();
    const second = fakeSource();
    await run(path, out, {}, second);
    expect(first.asked.filter((text) => second.asked.includes(text))).toEqual([]);
    expect(first.asked.length + second.asked.length).toBe(rowCount - Math.ceil((rowCount - 13) / 97));
  });

  it('is not gone on with by another input, model or setting, and says which', async () => {
    const path = input();
    const out = place.path('out.jsonl');
    await expect(run(path, out, {}, fakeSource('dense', { failsAfter: 1 }))).rejects.toThrow('told to fail');
    const other = { ...fakeSource(), identity: 'other@2' };
    await expect(run(path, out, {}, other)).rejects.toThrow('model: was fake@1, is other@2');
    await expect(run(path, out, { fields: { text: 'text', id: null } })).rejects.toThrow('idField: was id, is none');
    utimesSync(path, 1, 1);
    await expect(run(path, out)).rejects.toThrow(/input: was .*\n?.*--restart|--restart/u);
    await run(path, out, { restarts: true });
    expect(existsSync(out)).toBe(true);
  });
});

describe('a run that is whole', () => {
  it('is not run again, unless it is begun anew', async () => {
    const path = input();
    const out = place.path('out.jsonl');
    await run(path, out);
    const again = fakeSource();
    expect(await run(path, out, {}, again)).toMatchObject({ wasDone: true, rows: rowCount - 12 });
    expect(again.asked).toEqual([]);
    expect(await run(path, out, { restarts: true }, again)).toMatchObject({ wasDone: false });
  });

  it('never takes the name of a file that it has not made', async () => {
    const out = place.write('out.jsonl', 'precious');
    await expect(run(input(), out)).rejects.toThrow('is there already');
    expect(readFileSync(out, 'utf8')).toBe('precious');
  });

  it('leaves the output of the run before in its place until it is whole itself', async () => {
    const path = input();
    const out = place.path('out.jsonl');
    await run(path, out);
    const before = readFileSync(out);
    await expect(run(path, out, { restarts: true }, fakeSource('dense', { failsAfter: 1 }))).rejects.toThrow();
    expect(readFileSync(out).equals(before)).toBe(true);
    expect(await run(path, out)).toMatchObject({ wasDone: false });
  });
});

describe('the lock of an output', () => {
  it('refuses a second run while the first one lives, and is taken over from one that does not', async () => {
    const path = input();
    const out = place.path('out.jsonl');
    const { lock } = workPaths(out);
    writeFileSync(lock, JSON.stringify({ pid: process.pid, host: hostname(), started: null }));
    await expect(run(path, out)).rejects.toThrow(`process ${process.pid} writes this output`);
    writeFileSync(lock, JSON.stringify({ pid: process.pid, host: hostname(), started: 'long ago' }));
    await run(path, out);
    expect(existsSync(lock)).toBe(false);
  });

  it('of another machine is never taken over', async () => {
    const out = place.path('out.jsonl');
    writeFileSync(workPaths(out).lock, JSON.stringify({ pid: 1, host: 'elsewhere', started: null }));
    await expect(run(input(), out)).rejects.toThrow('elsewhere writes this output');
  });
});

describe('a bad row', () => {
  it('ends the run with its file and line, unless such rows are left out', async () => {
    const path = input();
    await expect(run(path, place.path('out.jsonl'), { skipsBad: false })).rejects.toThrow(
      `${path}:14: has no field text`,
    );
  });
});
