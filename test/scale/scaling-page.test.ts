import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { flagOf } from '../../src/config/names.ts';
import { settingsMeta } from '../../src/config/settings.ts';
import { metricNames } from '../support/metric-names.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}docs/scaling.md`, 'utf8');

/** The numbers of a row of the table, without what stands in brackets. */
function rowOf(title: string): number[] {
  const row = page.split('\n').find((line) => line.startsWith(`| ${title} `)) ?? '';
  return row
    .split('|')
    .slice(2, -1)
    .map((cell) => Number(/^[\d.,]+/u.exec(cell.trim())?.[0].replaceAll(',', '')));
}

const gpus = [1, 10, 1000];
const [load, documentTokens] = [0.7, 170];
/** Rounded for a reader: two digits are right. */
const nearly = (value: number) => [value * 0.96, value * 1.04] as const;

function expectRow(title: string, values: readonly number[]): void {
  const found = rowOf(title);
  expect(found, title).toHaveLength(values.length);
  for (const [index, value] of values.entries()) {
    const [least, most] = nearly(value);
    expect(found[index], `${title} ${index}`).toBeGreaterThan(least);
    expect(found[index], `${title} ${index}`).toBeLessThan(most);
  }
}

describe('the page on more than one machine', () => {
  it('names metrics and files that exist', () => {
    const metrics = [...page.matchAll(/\btrivec_[a-z_]+/gu)].map(([name]) => name);
    expect(metrics.length).toBeGreaterThan(10);
    expect(metricNames()).toEqual(expect.arrayContaining(metrics));
    const paths = [...page.matchAll(/`((?:deploy|examples|docs)\/[^`{]*\.\w+)`/gu)].map(([, path]) => path ?? '');
    expect(paths.length).toBeGreaterThan(1);
    for (const path of paths) expect(existsSync(`${root}${path}`), path).toBe(true);
    const flags = [...page.matchAll(/`(--key-[a-z-]+)`/gu)].map(([, flag]) => flag);
    expect([...settingsMeta.keys()].map(flagOf)).toEqual(expect.arrayContaining(flags));
  });

  it('names images of this version, made from targets that the Dockerfile has', () => {
    const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string };
    const targets = ['cpu', 'cuda'];
    const tags = [...page.matchAll(/registry\.example\/trivec:(\S+?)\)?(?=\s)/gu)].map(([, tag]) => tag ?? '');
    expect(tags.length).toBeGreaterThan(2);
    expect(tags.filter((tag) => !targets.some((target) => tag === `${version}-${target}`))).toEqual([]);
    const stages = [...readFileSync(`${root}Dockerfile`, 'utf8').matchAll(/^FROM \S+ AS (\S+)$/gmu)].map(
      ([, name]) => name,
    );
    const built = [...page.matchAll(/docker build --target (\w+) -t \S+-(\w+) /gu)];
    expect(built.length).toBeGreaterThan(0);
    for (const [, target, suffix] of built) expect([stages.includes(target), suffix]).toEqual([true, target]);
  });

  it.each(readdirSync(`${root}docs`).filter((name) => name.endsWith('.md')))(
    'no query of %s looks back less than two minutes: at a scrape interval of 60 s it would find nothing',
    (name) => {
      const text = readFileSync(`${root}docs/${name}`, 'utf8');
      const windows = [...text.matchAll(/trivec_\w+(?:\{[^}]*\})?\[(\d+)([smh])\]/gu)];
      const seconds = { s: 1, m: 60, h: 3600 } as const;
      const short = windows.filter(([, count, unit]) => Number(count) * seconds[unit as keyof typeof seconds] < 120);
      expect(short.map(([query]) => query)).toEqual([]);
    },
  );

  it.each([500_000, 50_000])('computes what %i tokens/s per GPU give by its own formula', (tokensPerSecond) => {
    const documents = gpus.map((count) => (count * tokensPerSecond * load) / documentTokens);
    expectRow(`documents/s at T = ${tokensPerSecond.toLocaleString('en')}`, documents);
  });

  it('computes calls and bytes from the documents of its first row', () => {
    const documents = gpus.map((count) => (count * 500_000 * load) / documentTokens);
    expectRow(
      'calls/s, lists of 32',
      documents.map((count) => count / 32),
    );
    expectRow(
      'calls in flight, lists of 32',
      documents.map((count) => (count / 32) * 0.2),
    );
    expectRow(
      'calls in flight, one document each',
      documents.map((count) => count * 0.2),
    );
    const units = [1e6, 1e6, 1e9];
    const bytesOf = (each: number) => documents.map((count, index) => (count * each) / (units[index] ?? 1));
    expectRow('texts in', bytesOf(860));
    expectRow('vectors out, base64', bytesOf(2070));
    expectRow('vectors out, JSON numbers', bytesOf(4736));
  });
});
