import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { takeLock } from '../../../src/bulk/work/lock.ts';
import { openPlace, type Place } from './fakes.ts';

let place: Place;
beforeEach(() => (place = openPlace()));
afterEach(() => {
  place.remove();
});

const module = fileURLToPath(new URL('../../../src/bulk/work/lock.ts', import.meta.url));
const leftBehind = (started: string): string => JSON.stringify({ pid: process.pid, host: hostname(), started });

/** Takes the lock of each round as soon as the round's file is there, and says which it got. */
const script = `
const { existsSync } = await import('node:fs');
const { takeLock } = await import(process.env.MODULE);
const { FOLDER, ROUNDS } = process.env;
const got = [];
process.stdout.write('ready\\n');
for (let round = 0; round < Number(ROUNDS); round += 1) {
  while (!existsSync(FOLDER + '/go' + round)) await new Promise((resolve) => setImmediate(resolve));
  try {
    await takeLock(FOLDER + '/lock' + round);
    got.push(round);
  } catch (error) {
    if (error.name !== 'BulkFailure') throw error;
  }
}
process.stdout.write(JSON.stringify(got) + '\\n');
process.stdin.resume();
`;

describe('a lock', () => {
  const rounds = 40;
  it('is taken by exactly one of several processes, be it free or left behind', { timeout: 60_000 }, async () => {
    const env = { ...process.env, MODULE: module, FOLDER: place.folder, ROUNDS: String(rounds) };
    const words = ['--import', 'tsx', '--input-type=module', '-e', script];
    const children = Array.from({ length: 4 }, () =>
      spawn(process.execPath, words, { env, stdio: ['pipe', 'pipe', 'inherit'] }),
    );
    const closed = children.map((child) => once(child, 'close'));
    const outputs = children.map(() => '');
    try {
      for (const [index, { stdout }] of children.entries())
        stdout.setEncoding('utf8').on('data', (text: string) => (outputs[index] = `${outputs[index] ?? ''}${text}`));
      const until = async (lines: number): Promise<void> => {
        while (outputs.some((output) => output.split('\n').length <= lines)) {
          if (children.some(({ exitCode }) => exitCode !== null)) throw new Error('a process ended');
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      await until(1);
      for (let round = 0; round < rounds; round += 1) {
        if (round % 4 === 1) place.write(`lock${round}`, leftBehind('long ago'));
        if (round % 4 === 2) place.write(`lock${round}`, '');
        if (round % 4 === 3)
          place.write(`lock${round}`, JSON.stringify({ pid: 2 ** 22, host: hostname(), started: '1' }));
        place.write(`go${round}`, '');
      }
      await until(2);
      const got = outputs.flatMap((output) => JSON.parse(output.split('\n')[1] ?? '') as number[]);
      expect(got.sort((a, b) => a - b)).toEqual(Array.from({ length: rounds }, (_, round) => round));
    } finally {
      for (const child of children) child.kill('SIGKILL');
      await Promise.all(closed);
    }
  });

  it('that was left behind twice, the second time while it was taken over, is taken all the same', async () => {
    const path = place.path('x.lock');
    writeFileSync(path, leftBehind('long ago'));
    const giveBack = await takeLock(path);
    giveBack();
    writeFileSync(path, leftBehind('long ago'));
    const { createHash } = await import('node:crypto');
    const name = createHash('sha256').update(leftBehind('long ago')).digest('hex').slice(0, 12);
    writeFileSync(`${path}.${name}`, leftBehind('not so long ago'));
    (await takeLock(path))();
    expect(readdirSync(place.folder)).toEqual([]);
  });

  it('is whole as soon as it is there, and leaves nothing when it is given back', async () => {
    const path = place.path('x.lock');
    const giveBack = await takeLock(path);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ pid: process.pid, host: hostname() });
    await expect(takeLock(path)).rejects.toThrow(`process ${process.pid} writes this output`);
    expect(readdirSync(place.folder)).toEqual(['x.lock']);
    giveBack();
    expect(existsSync(path)).toBe(false);
  });
});
