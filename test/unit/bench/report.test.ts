import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundledTexts, cutToWords, readTexts, spread } from '../../../src/bench/corpus.ts';
import { readPlan } from '../../../src/bench/plan.ts';
import { commandOf, describeLoad, reportJson, showMarkdown, showReport } from '../../../src/bench/report.ts';
import { textsOf } from '../../../src/bench/run.ts';
import type { BenchResult } from '../../../src/bench/run.ts';
import { summarise } from '../../../src/bench/summary.ts';

const words = ['--api-key', 'geheim', '--compare-serve', '--api-key geheim --device cpu', '--', '--api-key=geheim'];
const flags = { apiKey: 'geheim', compareServe: '--api-key geheim --device cpu', markdown: true };
const plan = readPlan(flags, { operands: [], serveFlags: ['--api-key=geheim'] });
const context = { version: '1.2.3', words, machine: { cpu: 'A chip', cores: 2, platform: 'linux x64', node: 'v20' } };
const loads = [
  summarise('documents', [
    {
      load: 'documents',
      counts: {
        texts: 10,
        tokens: null,
        latenciesMs: [4],
        refusalsMs: [1.5],
        dropped: 3,
        failures: { 'HTTP 500': { count: 2, example: 'broken | pipe' } },
      },
      cost: { elapsedMs: 1000, cpuMs: null, clientCpuMs: 1, work: null },
    },
  ]),
];
const result: BenchResult = {
  sides: [
    { name: 'A', label: 'rcp, started here' },
    { name: 'B', label: 'tei, http://b' },
  ],
  texts: { documents: 10, queries: 0 },
  rounds: [[{ side: 'A', loads }]],
  summary: [{ side: 'A', loads }],
  ratios: [{ name: 'texts/s: A / B', isHigherBetter: true, median: 2, min: 1, max: 3, perRound: [1, 2, 3] }],
};

describe('the report', () => {
  const text = showReport(plan, result, context);

  it('says which is which, on what machine, and how it was loaded', () => {
    expect(text).toContain('A: rcp, started here\nB: tei, http://b\n');
    expect(text).toContain('A chip, 2 cores, linux x64, Node v20, trivec 1.2.3');
    expect(text).toContain(describeLoad(plan, result));
  });

  it('shows what is unknown as a dash, and failures and refusals with what they were', () => {
    expect(text).toMatch(/^A +documents +10\.0 +- +4\.00 +4\.00 +4\.00 +2 +1 +3 +- +-$/mu);
    expect(text).toContain('A, documents: 2 x HTTP 500, such as: broken | pipe');
    expect(text).toContain('refusals took 1.50 ms (p50)');
  });

  it('in Markdown begins with the command that makes it, and has the same numbers', () => {
    const markdown = showMarkdown(plan, result, context);
    expect(markdown.startsWith(`\`\`\`console\n$ ${commandOf(words)}\n`)).toBe(true);
    expect(markdown).toContain('| A | documents | 10.0 | - | 4.00 |');
    expect(markdown).toContain('| texts/s: A / B | 2.00 | 1.00 | 3.00 | higher | 3 |');
  });

  it('never shows a key', () => {
    const json = JSON.stringify(reportJson(plan, result, context));
    for (const form of [text, showMarkdown(plan, result, context), json]) expect(form).not.toContain('geheim');
    expect(commandOf(words)).toBe(
      `node dist/main.js bench --api-key '(hidden)' --compare-serve '--api-key (hidden)' -- '--api-key=(hidden)'`,
    );
  });

  it('for programs has machine, settings, rounds and what they amount to', () => {
    expect(reportJson(plan, result, context)).toMatchObject({
      machine: { cores: 2 },
      settings: { callers: 16, rounds: 3 },
      rounds: [[{ side: 'A', loads: [{ load: 'documents' }] }]],
      ratios: [{ median: 2 }],
    });
  });
});

describe('the texts', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bench-'));
  });
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('without a file are 400 of the bundled documents, evenly spaced, none of them empty', () => {
    const { documents, queries } = textsOf(readPlan({}, { operands: [], serveFlags: [] }));
    const all = readTexts(bundledTexts.documents);
    expect(all).toHaveLength(1398);
    expect(documents).toHaveLength(400);
    expect(new Set(documents.map((text) => all.indexOf(text))).size).toBe(400);
    expect(documents.at(-1)).toBe(all[1394]);
    expect(documents.every((text) => text.trim() !== '')).toBe(true);
    expect(queries).toEqual([]);
  });

  it('are spread over all that there are', () => {
    expect(spread([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 4)).toEqual([0, 2, 5, 7]);
    expect(spread([0, 1], 4)).toEqual([0, 1]);
  });

  it('may be plain lines or JSON with a text', () => {
    const path = join(folder, 'mixed.txt');
    writeFileSync(path, 'plain\n\n{"text":"of JSON"}\r\n{not JSON}\n{"text":""}\n{"other":1}\n');
    expect(readTexts(path)).toEqual(['plain', 'of JSON', '{not JSON}', '{"other":1}']);
  });

  it('of a file that is not there or empty are a fault of the configuration', () => {
    const path = join(folder, 'empty.txt');
    writeFileSync(path, '\n');
    expect(() => readTexts(path)).toThrow('holds no text');
    expect(() => readTexts(join(folder, 'none'))).toThrow('cannot be read');
  });

  it('can be cut to their first words', () => {
    expect(cutToWords('one two  three', 2)).toBe('one two');
  });
});
