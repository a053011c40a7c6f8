import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { frameProblems } from '../support/harness/frame-check.ts';
import {
  batch,
  embedding,
  failure,
  handshake,
  notification,
  ok,
  pong,
  request,
  vectors,
} from '../support/harness/frames.ts';
import { spawnFixture } from '../support/harness/process.ts';
import { watch, type WatchedProcess } from '../support/harness/watch.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'trivec-process-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const framesOf = ({ stdout }: WatchedProcess) => {
  const text = stdout();
  if (text === '') return [];
  expect(text.endsWith('\n')).toBe(true);
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => {
      expect(frameProblems(line)).toEqual([]);
      return JSON.parse(line) as unknown;
    });
};

/** Runs a stdio session whose whole input is known: what it answered, and how it ended. */
async function runSession(input: string, flags: readonly string[] = []) {
  const server = spawnFixture(['--stdio', '--log-level', 'debug', ...flags]);
  server.child.stdin.end(input);
  const exitCode = await server.ended;
  return { exitCode, frames: framesOf(server), stderr: server.stderr() };
}

const lines = (...frames: string[]) => frames.map((frame) => `${frame}\n`).join('');
const startStdio = async (): Promise<WatchedProcess> => {
  const server = spawnFixture(['--stdio', '--log-level', 'warn']);
  server.child.stdin.write(lines(handshake(0)));
  await server.until(/"id":0/);
  return server;
};
const msUntilEnd = async (server: WatchedProcess) => {
  const started = performance.now();
  await server.ended;
  return performance.now() - started;
};

describe.concurrent('the process on stdio', () => {
  it('F-06 whatever a back end prints, stdout holds frames only', async () => {
    const { exitCode, frames, stderr } = await runSession(
      lines(handshake(1), embedding(2, 'print'), embedding(3, 'boom')),
    );
    expect(frames).toMatchObject([ok(1), vectors(2, [112, 114, 105, 110]), failure(3, -32603)]);
    expect(stderr).toContain('the back end prints');
    expect(exitCode).toBe(0);
  });

  it('F-06 what an executor process writes to its stdout goes to stderr', async () => {
    const noise = join(folder, 'noise.mjs');
    writeFileSync(
      noise,
      "import { writeSync } from 'node:fs'; console.log('noise 1'); writeSync(1, 'noise 2\\n'); process.exit(0);",
    );
    const channel = pathToFileURL(join(root, 'dist/device/channel.js')).href;
    const script = `import { forkExecutor } from '${channel}'; forkExecutor(${JSON.stringify(noise)})('x').onExit(() => console.log('gone'));`;
    const parent = watch(spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'pipe' }));
    await parent.ended;
    expect(parent.stdout()).toBe('gone\n');
    expect(parent.stderr()).toMatch(/noise 1[^]*noise 2/);
  });

  it('F-08 at the end of input everything accepted is finished, then exit code 0', async () => {
    const { exitCode, frames } = await runSession(lines(handshake(1), embedding(2, 'slow:200'), embedding(3, 'a')));
    expect(exitCode).toBe(0);
    expect(frames).toMatchObject([ok(1), ok(2), ok(3)]);
  });

  it('F-08 also where the device fails meanwhile', async () => {
    const { exitCode, frames } = await runSession(lines(handshake(1), embedding(2, 'down')));
    expect(frames).toMatchObject([ok(1), failure(2, -32010)]);
    expect(exitCode).toBe(0);
  });

  it('F-09 a last line without its end is a message', async () => {
    const { exitCode, frames } = await runSession(request(2, 'ping'));
    expect(exitCode).toBe(0);
    expect(frames).toMatchObject([pong(2)]);
  });

  it('F-16 a vanished reader ends the process quietly with exit code 0', async () => {
    const server = await startStdio();
    server.child.stdout.destroy();
    const gone = msUntilEnd(server);
    server.child.stdin.write(lines(request(1, 'ping'), request(2, 'ping')));
    await sleep(50);
    server.child.stdin.write(lines(request(3, 'ping')));
    expect(await gone).toBeLessThan(2000);
    expect(await server.ended).toBe(0);
    expect(server.stderr()).not.toMatch(/Unhandled|EPIPE|\bat .+:\d+:\d+/);
  });

  it('F-17 SIGTERM ends the process within a second, work in flight or not', async () => {
    const server = await startStdio();
    server.child.stdin.write(lines(embedding(1, 'slow:60000'), request(2, 'ping')));
    await server.until(/"id":2/);
    server.child.kill('SIGTERM');
    expect(await msUntilEnd(server)).toBeLessThan(1500);
    expect(framesOf(server).slice(0, 2)).toMatchObject([ok(0), pong(2)]);
    expect(server.stderr()).not.toMatch(/Unhandled|\bat .+:\d+:\d+/);
  });

  it('N-03 a shutdown without an id: nothing is said, exit code 0', async () => {
    expect(await runSession(lines(notification('shutdown'), request(1, 'ping')))).toMatchObject({
      exitCode: 0,
      frames: [],
    });
  });

  it('L-13 after a shutdown the process is gone with exit code 0, while its input is still open', async () => {
    const server = await startStdio();
    server.child.stdin.write(lines(embedding(1, 'slow:100'), request(2, 'shutdown', {}), request(3, 'ping')));
    await server.until(/"id":2/);
    expect(await msUntilEnd(server)).toBeLessThan(1500);
    expect(await server.ended).toBe(0);
    expect(framesOf(server)).toMatchObject([ok(0), ok(1), ok(2)]);
  });

  it('L-14 a shutdown as the first word is answered, exit code 0', async () => {
    const { exitCode, frames } = await runSession(lines(request(1, 'shutdown')));
    expect([exitCode, frames.length]).toEqual([0, 1]);
  });

  it('L-15 the end of an empty input is exit code 0', async () => {
    expect(await runSession('')).toMatchObject({ exitCode: 0, frames: [] });
  });

  it('BA-31 a shutdown in a batch ends the process with exit code 0', async () => {
    const frame = batch(request(1, 'ping'), request(2, 'shutdown'), request(3, 'ping'));
    const { exitCode, frames } = await runSession(lines(frame, request(4, 'ping')));
    expect(exitCode).toBe(0);
    expect(frames).toMatchObject([[pong(1), ok(2), pong(3)]]);
  });

  it('BA-42 a batch right before the end of input is answered', async () => {
    const { exitCode, frames } = await runSession(
      lines(handshake(1)) + batch(embedding(2, 'slow:100'), request(3, 'ping')),
    );
    expect(exitCode).toBe(0);
    expect(frames).toMatchObject([ok(1), [ok(2), pong(3)]]);
  });

  it('L-16 with the models of the package the first info is there within ten seconds', async () => {
    const started = performance.now();
    const server = watch(spawn(process.execPath, [join(root, 'dist/main.js'), 'serve', '--stdio'], { stdio: 'pipe' }));
    server.child.stdin.write(lines(request(1, 'info')));
    await server.until(/"id":1/);
    expect(performance.now() - started).toBeLessThan(10_000);
    server.child.stdin.end();
    expect(await server.ended).toBe(0);
    expect(framesOf(server)).toMatchObject([ok(1, { capabilities: { embed: expect.any(Object) } })]);
  });
});

describe.concurrent('the process on HTTP', () => {
  const startHttp = async (flags: readonly string[] = []) => {
    const server = spawnFixture(['--log-level', 'warn', ...flags]);
    const [, url = ''] = /listening on (\S+)/.exec(await server.until(/listening on \S+/)) ?? [];
    const post = async (frame: string) => {
      const response = await fetch(url, { method: 'POST', body: frame, headers: { connection: 'close' } });
      return response.json();
    };
    return { server, url, post };
  };

  it('L-26 shutdown over HTTP does not stop the process', async () => {
    const { server, post } = await startHttp();
    expect(await post(request(1, 'shutdown', {}))).toMatchObject(ok(1));
    expect(await post(embedding(2, 'a'))).toMatchObject(vectors(2, [97, 0, 0, 0]));
    server.child.kill('SIGTERM');
    expect(await server.ended).toBe(0);
  });

  it('F-17 SIGTERM lets running requests finish, and exits with 0', async () => {
    const { server, url, post } = await startHttp();
    const running = post(embedding(1, 'slow:1000'));
    const metrics = url.replace(/rcp$/, 'metrics');
    while (!/^trivec_running_inputs 1$/m.test(await (await fetch(metrics)).text())) await sleep(5);
    server.child.kill('SIGTERM');
    expect(await running).toMatchObject(ok(1));
    expect(await server.ended).toBe(0);
    await expect(fetch(url, { method: 'POST' })).rejects.toThrow();
  });

  it('F-06 on HTTP nothing is written to stdout', async () => {
    const { server, post } = await startHttp(['--log-level', 'debug']);
    await post(embedding(1, 'boom'));
    server.child.kill('SIGTERM');
    await server.ended;
    expect(server.stdout()).toBe('');
  });
});
