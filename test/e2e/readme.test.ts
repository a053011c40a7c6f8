/** Owns that the README tells the truth: its commands are run, and what they print is compared with what it shows. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blocksOf, comparable, examplesOf, runToEnd } from '../support/pages.ts';
import { startServed, type Served } from '../support/served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const blocks = blocksOf(readFileSync(`${root}README.md`, 'utf8'));

/** Blocks of one command and what it prints; blocks that show no output are prose. */
const examples = blocks
  .filter(({ language }) => language === 'console')
  .map(examplesOf)
  .flatMap((each) => (each.length === 1 ? each : []))
  .filter(({ shown }) => shown !== '');
const programs = blocks.filter(({ language }) => language === 'js').map(({ text }) => text);

let served: Served;
beforeAll(async () => {
  served = await startServed();
}, 60_000);
afterAll(() => served.end());

const here = (text: string) => text.replaceAll('http://127.0.0.1:8000', served.baseUrl);

describe('the README', () => {
  it('shows an example of every method, of a batch and of a file', () => {
    const commands = examples.map(({ command }) => command).join('\n');
    for (const method of ['"embed"', '"embed/sparse"', '"embed/multi"', '"rerank"', "-d '[{", ' embed - ']) {
      expect(commands).toContain(method);
    }
  });

  it.each(examples)('prints what it shows: $command', { timeout: 30_000 }, async ({ command, shown }) => {
    const { stdout } = await runToEnd('bash', ['-c', here(command)], { cwd: root });
    expect(comparable(stdout, command)).toBe(comparable(shown, command));
  });

  it.each(programs)('shows a program that runs', { timeout: 30_000 }, async (program) => {
    // The package finds itself by its own name.
    const flags = ['--input-type=module', '--eval', here(program)];
    expect(await runToEnd(process.execPath, flags, { cwd: root })).toEqual({ code: 0, stdout: '', text: '' });
  });
});
