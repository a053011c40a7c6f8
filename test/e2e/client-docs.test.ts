/** Owns that the page about the client tells the truth: its program is run, and what it prints is what the page shows. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { startServed, type Served } from '../support/served.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${root}docs/client.md`, 'utf8');
const [, program = '', shown = ''] = /```js\n(.+?)```\n.*?```text\n(.+?)```/s.exec(page) ?? [];

let served: Served;
beforeAll(async () => {
  served = await startServed();
}, 60_000);
afterAll(() => served.end());

describe('the page about the client', () => {
  it('shows a program that prints what the page says', { timeout: 60_000 }, async () => {
    const here = program.replace('http://127.0.0.1:8000', served.baseUrl);
    expect(here).toContain(served.baseUrl);
    // The package finds itself by its own name.
    const { stdout, stderr } = await run(process.execPath, ['--input-type=module', '--eval', here], { cwd: root });
    expect([stdout, stderr]).toEqual([shown, '']);
  });

  it('names a command that starts a server of its own', { timeout: 60_000 }, async () => {
    expect(page).toContain("connect({ command: 'node', args: ['dist/main.js', 'serve', '--stdio'] })");
    const client = await connect({
      command: 'node',
      args: ['dist/main.js', 'serve', '--stdio'],
      cwd: root,
      stderr: 'ignore',
    });
    const { vectors } = await client.embed(['a wing', 'a loaf']);
    const { vectors: overHttp } = await (await connect(served.baseUrl)).embed(['a wing', 'a loaf']);
    expect(vectors).toEqual(overHttp);
    await client.close();
  });
});
