import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { temporaryFolder } from '../../support/files.ts';
import { createHarnesses, parseAnswer, post, type HttpAnswer } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);
const folder = temporaryFolder();
let paths = 0;
const freshPath = () => join(folder, `${String((paths += 1))}.sock`);

const startAt = (path: string, mode = 0o600) =>
  start({ isLoopbackBind: false }, {}, null, { kind: 'unix', path, mode });

function exchange(path: string, bytes: Buffer): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(path, () => socket.write(bytes));
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    socket.on('error', reject).once('close', () => {
      resolve(parseAnswer(text));
    });
  });
}

/** A socket file whose process is gone without removing it. */
function staleSocket(path: string): void {
  const code = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', code]);
  expect(statSync(path).isSocket()).toBe(true);
}

describe('a Unix socket', () => {
  it('is served as a port is, says where it is, and is gone at the end', async () => {
    const path = freshPath();
    const harness = await startAt(path);
    expect([harness.listener.url, harness.listener.port]).toEqual([`unix:${path}`, 0]);
    for (const host of ['localhost', 'api.example']) {
      expect(await exchange(path, post('/rcp/ping', '"hi"', { Host: host }))).toMatchObject({
        status: 200,
        body: '{"echo":"\\"hi\\""}',
      });
    }
    expect((await exchange(path, post('/rcp/ping', '{}', { Origin: 'https://evil.example' }))).status).toBe(403);
    await harness.close(0);
    expect(existsSync(path)).toBe(false);
  });

  it.each([0o600, 0o660, 0o666])('has the mode %d, whatever the mask of the process', async (mode) => {
    const path = freshPath();
    const mask = process.umask(0);
    try {
      await startAt(path, mode);
      expect(process.umask(0)).toBe(0);
    } finally {
      process.umask(mask);
    }
    expect(statSync(path).mode & 0o777).toBe(mode);
  });

  it('that was left behind is replaced', async () => {
    const path = freshPath();
    staleSocket(path);
    await startAt(path);
    expect((await exchange(path, post('/rcp/ping'))).status).toBe(200);
  });

  it('on which somebody answers is a configuration error and stays theirs', async () => {
    const path = freshPath();
    await startAt(path);
    const second = startAt(path);
    await expect(second).rejects.toBeInstanceOf(ConfigurationError);
    await expect(second).rejects.toThrow(`cannot listen on unix:${path}: the address is already in use`);
    expect((await exchange(path, post('/rcp/ping'))).status).toBe(200);
  });

  it('never takes the place of a file or a folder', async () => {
    const file = freshPath();
    writeFileSync(file, 'precious');
    await expect(startAt(file)).rejects.toThrow(/no socket is at this path/);
    expect(readFileSync(file, 'utf8')).toBe('precious');
    const directory = freshPath();
    mkdirSync(directory);
    await expect(startAt(directory)).rejects.toThrow(/no socket is at this path/);
  });

  it('in a folder that is not there is a configuration error', async () => {
    await expect(startAt(join(folder, 'missing', 'x.sock'))).rejects.toThrow(/there is no such folder/);
  });
});
