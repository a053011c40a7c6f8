/** Owns that the README tells the truth: its commands are run, and what they print is compared with what it shows. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServed, type Served } from '../support/served.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(`${root}README.md`, 'utf8');

interface Example {
  readonly command: string;
  readonly shown: string;
}

/** Blocks of one command and what it prints; blocks that show no output are prose. */
const examples: Example[] = [...readme.matchAll(/```console\n\$ (?<command>[^\n]+)\n(?<shown>[^$`][^`]*)```/g)].map(
  ({ groups }) => ({ command: groups?.['command'] ?? '', shown: (groups?.['shown'] ?? '').trim() }),
);

/**
 * What stays the same on every machine: times are left out, and so are the digits of numbers with a point, because
 * processors differ in the last ones; what follows a number that a command cut in the middle is cut as well.
 */
function comparable(text: string, isCut: boolean): string {
  const masked = text
    .trim()
    .replace(/"(latencyMs|queueMs|computeMs)":\d+/g, '"$1":0')
    .replace(/-?\d+\.\d+(e-?\d+)?/g, '#');
  return isCut ? masked.slice(0, 60) : masked;
}

let served: Served;
beforeAll(async () => {
  served = await startServed();
}, 60_000);
afterAll(() => served.end());

describe('the README', () => {
  it('shows an example of every method and of a batch', () => {
    const commands = examples.map(({ command }) => command).join('\n');
    for (const method of ['"embed"', '"embed/sparse"', '"embed/multi"', '"rerank"', "-d '[{"]) {
      expect(commands).toContain(method);
    }
  });

  it.each(examples)('prints what it shows: $command', { timeout: 30_000 }, async ({ command, shown }) => {
    const isCut = command.includes('| cut');
    const here = command.replaceAll('http://127.0.0.1:8000', served.baseUrl);
    const { stdout } = await run('bash', ['-c', here], { cwd: root });
    // Signs and terms near zero may differ between processors: their number and place may not.
    const isExact = !command.includes('ubinary') && !command.includes('sparse') && !command.includes('base64');
    const mask = (text: string) => (isExact ? comparable(text, isCut) : comparable(text, isCut).replace(/\d+/g, '#'));
    const shape = (text: string) => (isExact ? mask(text) : mask(text).slice(0, 70));
    expect(shape(stdout)).toBe(shape(shown));
  });
});
