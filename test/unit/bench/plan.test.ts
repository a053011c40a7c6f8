import { describe, expect, it } from 'vitest';
import { splitWords } from '../../../src/bench/flag-reader.ts';
import { readPlan } from '../../../src/bench/plan.ts';
import { ConfigurationError } from '../../../src/errors.ts';

const none = { operands: [], serveFlags: [] };
const url = 'http://127.0.0.1:8000';
const problemsOf = (flags: Record<string, unknown>, words = none as { operands: string[]; serveFlags: string[] }) => {
  try {
    readPlan(flags, words);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
};

describe('the plan of a benchmark', () => {
  it('without anything starts a server and sends the bundled documents', () => {
    expect(readPlan({}, none)).toMatchObject({
      first: { server: { kind: 'started', flags: [] }, target: 'rcp' },
      second: null,
      mode: 'closed',
      mix: 'bulk',
      callers: 16,
      batch: 1,
      documents: 400,
      rounds: 3,
      corpus: null,
    });
  });

  it('takes a server that runs, or the flags of one to start, on either side', () => {
    const words = { operands: [], serveFlags: ['--device', 'cpu'] };
    const plan = readPlan({ compare: url, compareTarget: 'tei', comparePid: '7' }, words);
    expect(plan.first.server).toEqual({ kind: 'started', flags: ['--device', 'cpu'] });
    expect(plan.second).toMatchObject({ target: 'tei', server: { kind: 'running', url, pid: 7 } });
    const other = readPlan({ compareServe: '--precision fp32' }, { operands: [url], serveFlags: [] });
    expect(other.first.server).toEqual({ kind: 'running', url, pid: null });
    expect(other.second?.server).toEqual({ kind: 'started', flags: ['--precision', 'fp32'] });
  });

  it('sends a list in one call unless a batch says otherwise, and all documents of a file', () => {
    expect(readPlan({ mode: 'list', corpus: 'x' }, none)).toMatchObject({ batch: null, documents: null });
    expect(readPlan({ mode: 'list', batch: '8', documents: '10' }, none)).toMatchObject({ batch: 8, documents: 10 });
  });

  it('names every problem at once', () => {
    const flags = {
      target: 'tpu',
      mode: 'x',
      callers: '0',
      rate: 'fast',
      rounds: '1.5',
      compareTarget: 'tei',
      batch: '',
    };
    const problems = problemsOf(flags, { operands: ['8000', 'more', '--zzz'], serveFlags: ['--device'] });
    const expected = [
      'unknown argument more',
      'unknown argument --zzz',
      '--mode must be one of closed, open, list',
      '--target must be one of rcp, tei, openai',
      'the URL must begin with http:// or https://',
      'flags after --',
      '--compare-target needs --compare',
      '--callers must be a whole number from 1 to 1024, not "0"',
      '--rate must be a number from',
      '--batch must be',
      '--rounds must be',
      '--rate is for --mode open or --mix both',
    ];
    for (const part of expected) expect(problems).toContainEqual(expect.stringContaining(part));
    expect(problems).toHaveLength(expected.length);
  });

  it.each([
    ['both an end by passes and one by time', { passes: '2', durationS: '3' }, '--passes and --duration-s'],
    ['an open loop without a rate', { mode: 'open' }, '--mode open needs --rate'],
    ['an open loop beside queries at a rate', { mode: 'open', rate: '3', mix: 'both' }, '--mix both'],
    ['callers without a closed loop', { mode: 'list', callers: '3' }, '--callers is for --mode closed'],
    ['a seed without arrivals', { seed: '3' }, '--seed is for --mode open or --mix both'],
    ['another target without a URL', { target: 'tei' }, '--target tei needs a URL'],
    ['a process for a server of its own', { pid: '3' }, '--pid needs a URL'],
    ['two second servers', { compare: url, compareServe: '' }, 'give one of them'],
    ['a second model without a second server', { compareModel: 'm' }, '--compare-model needs --compare'],
  ])('refuses %s', (_what, flags, problem) => {
    expect(problemsOf(flags)).toEqual([expect.stringContaining(problem)]);
  });
});

describe('flags in one word', () => {
  it('are parted as a shell does', () => {
    expect(splitWords(` --a  b --c="d e" 'f g' --h='i "j"' `)).toEqual(['--a', 'b', '--c=d e', 'f g', '--h=i "j"']);
    expect(splitWords('')).toEqual([]);
  });
});
