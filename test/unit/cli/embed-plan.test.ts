import { linkSync, mkdirSync, symlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readEmbedPlan } from '../../../src/cli/embed-plan.ts';
import { openPlace, type Place } from '../bulk/fakes.ts';

let place: Place;
beforeEach(() => (place = openPlace()));
afterEach(() => {
  place.remove();
});

const line = '{"text":"a"}\n';
const plan = (input: string, out: string) => readEmbedPlan(input, { out, restart: true });

describe('the output of a run', () => {
  it('is never its own input, by whatever name, not even with --restart', async () => {
    const input = place.write('in.jsonl', line);
    symlinkSync(input, place.path('soft.jsonl'));
    linkSync(input, place.path('hard.jsonl'));
    for (const out of ['in.jsonl', 'soft.jsonl', 'hard.jsonl'])
      await expect(plan(input, place.path(out))).rejects.toThrow('would overwrite');
  });

  it('has no file beside it that is its input', async () => {
    const input = place.write('x.npy.skipped.jsonl', line);
    await expect(plan(input, place.path('x.npy'))).rejects.toThrow('would overwrite');
    await expect(plan(input, place.path('y.npy'))).resolves.toMatchObject({ files: [{ name: input }] });
  });

  it('is a file in a folder that is there', async () => {
    const input = place.write('in.jsonl', line);
    mkdirSync(place.path('folder.npy'));
    await expect(plan(input, place.path('folder.npy'))).rejects.toThrow('is a folder');
    await expect(plan(input, place.path('none/x.npy'))).rejects.toThrow('there is no folder');
  });
});

describe('an input', () => {
  it('that is neither a file nor a folder is refused, instead of waiting for whoever writes it', async () => {
    await expect(readEmbedPlan('/dev/null', { format: 'jsonl', out: place.path('x.npy') })).rejects.toThrow(
      'neither a file nor a folder',
    );
  });

  it('that is a folder has each file once, though links lead in circles or nowhere', async () => {
    mkdirSync(place.path('data/below'), { recursive: true });
    place.write('data/a.jsonl', line);
    place.write('data/below/b.jsonl', line);
    symlinkSync('..', place.path('data/below/up'));
    symlinkSync('nowhere', place.path('data/c.jsonl'));
    const { files } = await plan(place.path('data'), place.path('x.npy'));
    expect(files.map(({ name }) => name)).toEqual([place.path('data/a.jsonl'), place.path('data/below/b.jsonl')]);
  });
});
