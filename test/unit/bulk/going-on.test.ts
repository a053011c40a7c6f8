import { mkdirSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { runBulk, type BulkPlan } from '../../../src/bulk/embed.ts';
import { findInputs } from '../../../src/bulk/read/inputs.ts';
import { RefusedText, type VectorSource } from '../../../src/bulk/source/source.ts';
import { journalLine, readJournal, type Entry } from '../../../src/bulk/work/journal.ts';
import { workPaths } from '../../../src/bulk/work/paths.ts';
import { fakeSource, never, openPlace, planOf, silent, type Place } from './fakes.ts';

let place: Place;
beforeEach(() => (place = openPlace()));
afterEach(() => {
  vi.restoreAllMocks();
  place.remove();
});

const good = (row: number): string => `${JSON.stringify({ text: `text ${row}` })}\n`;
const bad = '{"none":1}\n';
const linesOf = (count: number, badRows: readonly number[] = []): string[] =>
  Array.from({ length: count }, (_, row) => (badRows.includes(row) ? bad : good(row)));

const run = async (input: string, out: string, more: Partial<BulkPlan> = {}, source: VectorSource = fakeSource()) =>
  runBulk(await planOf(input, out, more), source, silent, never);
const stopped = (): VectorSource => fakeSource('dense', { failsAfter: 1 });
const indicesIn = (out: string): number[] =>
  readFileSync(out, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { index: number }).index);

/** A run whose stdin holds these lines. */
async function runStdin(lines: readonly string[], out: string, source?: VectorSource) {
  const stdin = Readable.from([Buffer.from(lines.join(''))]);
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stdin as unknown as typeof process.stdin);
  return run('-', out, { skipsBad: true }, source);
}

describe('a run that ended at a bad row', () => {
  it('goes on with --skip-bad, and cannot be taken for one without it afterwards', async () => {
    const input = place.write('in.jsonl', linesOf(100, [70]).join(''));
    const out = place.path('out.jsonl');
    await expect(run(input, out)).rejects.toThrow('--skip-bad leaves such rows out');
    const before = readJournal(readFileSync(workPaths(out).journal))?.chunks.length ?? 0;
    expect(before).toBeGreaterThan(0);
    const source = fakeSource();
    expect(await run(input, out, { skipsBad: true }, source)).toEqual({ wasDone: false, rows: 99, badRows: 1 });
    expect(source.asked).not.toContain('text 0');
    expect(indicesIn(out)).toEqual(Array.from({ length: 100 }, (_, row) => row).filter((row) => row !== 70));
    await expect(run(input, out)).rejects.toThrow('skipBad: was true, is false');
  });
});

describe('a run that has recorded nothing', () => {
  it('is begun anew by another command', async () => {
    const input = place.write('in.jsonl', linesOf(40).join(''));
    const out = place.path('out.jsonl');
    await expect(run(input, out, {}, fakeSource('dense', { failsAfter: 0 }))).rejects.toThrow('told to fail');
    const other = { ...fakeSource(), identity: 'other@2' };
    expect(await run(input, out, {}, other)).toMatchObject({ wasDone: false, rows: 40 });
  });
});

describe('stdin that is read again', () => {
  const before = linesOf(60, [3]);
  it('goes on where all that was read is the same', async () => {
    const out = place.path('out.jsonl');
    await expect(runStdin(before, out, stopped())).rejects.toThrow('told to fail');
    expect(await runStdin(before, out)).toMatchObject({ rows: 59, badRows: 1 });
    expect(indicesIn(out)).toEqual(Array.from({ length: 60 }, (_, row) => row).filter((row) => row !== 3));
  });

  it.each([
    ['moved', linesOf(60, [5]).map((line, row) => (row === 3 || row === 4 ? good(row + 1) : line))],
    ['gone', before.filter((_, row) => row !== 3)],
    ['more', [...before.slice(0, 4), bad, ...before.slice(4)]],
    ['bad for another reason', before.map((line, row) => (row === 3 ? 'no JSON\n' : line))],
  ])('is refused where only a bad row is %s', async (_, after) => {
    const out = place.path('out.jsonl');
    await expect(runStdin(before, out, stopped())).rejects.toThrow('told to fail');
    await expect(runStdin(after, out)).rejects.toThrow('stdin differs');
  });

  it('is refused where the journal has check sums of another form', async () => {
    const out = place.path('out.jsonl');
    await expect(runStdin(before, out, stopped())).rejects.toThrow('told to fail');
    const { journal } = workPaths(out);
    const found = readJournal(readFileSync(journal));
    if (found === null) throw new Error('no journal');
    const { checkSums, ...fingerprint } = found.fingerprint;
    expect(checkSums).toBeDefined();
    const entries: Entry[] = [{ type: 'start', fingerprint, headBytes: found.headBytes }, ...found.chunks];
    place.write('out.jsonl.journal', Buffer.concat(entries.map(journalLine)));
    await expect(runStdin(before, out)).rejects.toThrow('checkSums: was unset');
  });
});

describe('a folder', () => {
  it('holds no input that a run has written into it, but whatever else has such a name', async () => {
    for (const name of ['a.jsonl', 'b.txt', 'lonely.skipped.jsonl']) place.write(name, good(0));
    mkdirSync(place.path('below'));
    for (const out of ['below/made.jsonl', 'here.jsonl'])
      for (const end of ['', '.journal', '.skipped.jsonl', '.partial']) place.write(`${out}${end}`, good(0));
    const names = (await findInputs(place.folder, null)).map(({ name }) => name);
    expect(names).toEqual(['a.jsonl', 'b.txt', 'lonely.skipped.jsonl'].map((name) => place.path(name)));
  });

  it('can be run again after its own output has been written into it', async () => {
    mkdirSync(place.path('data'));
    place.write('data/a.jsonl', linesOf(20, [3]).join(''));
    const more = { skipsBad: true };
    const out = place.path('data/data.vectors.jsonl');
    expect(await run(place.path('data'), out, more)).toMatchObject({ wasDone: false, rows: 19 });
    expect(await run(place.path('data'), out, more)).toMatchObject({ wasDone: true, rows: 19 });
  });
});

describe('a text that is refused', () => {
  it('is named by its file and line', async () => {
    const input = place.write('in.jsonl', linesOf(30, [2]).join(''));
    const source: VectorSource = {
      ...fakeSource(),
      embed: (texts) => {
        const found = texts.indexOf('text 20');
        return found === -1 ? fakeSource().embed(texts, never) : Promise.reject(new RefusedText(found, 'is too long'));
      },
    };
    await expect(run(input, place.path('out.jsonl'), { skipsBad: true }, source)).rejects.toThrow(
      `${input}:21: is too long`,
    );
  });
});
