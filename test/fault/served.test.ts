/** Owns the faults of the whole service, provoked from outside. */
import { afterEach, describe, expect, it } from 'vitest';
import { readDocuments } from '../support/corpus.ts';
import { executorPids, isAlive, until } from '../support/executors.ts';
import { RpcError, startServed, type Served } from '../support/served.ts';

const served: Served[] = [];
const start = async (flags: string[] = []) => {
  const server = await startServed({ flags });
  served.push(server);
  return server;
};
afterEach(async () => {
  await Promise.all(served.splice(0).map((server) => server.end()));
});

const status = async (server: Served, path: string) => (await fetch(server.baseUrl + path)).status;
const texts = readDocuments()
  .map(({ text }) => text)
  .filter((text) => text !== '');
const textAt = (position: number) => texts[position % texts.length] ?? '';

/** Asks for /health/live again and again; `end` gives how often it was not 200. */
function watchLiveness(server: Served): { end(): Promise<number> } {
  const state = { isDone: false, failures: 0 };
  const finished = (async () => {
    while (!state.isDone) if ((await status(server, '/health/live')) !== 200) state.failures += 1;
    return state.failures;
  })();
  return {
    end() {
      state.isDone = true;
      return finished;
    },
  };
}

describe('executors that are killed under load', { timeout: 120_000 }, () => {
  it('lose no call: each of 200 in flight is answered once, with its own value or a retryable error', async () => {
    const server = await start();
    const alone = new Map<number, unknown>();
    for (const index of [0, 1, 2])
      alone.set(index, (await server.call('embed', { inputs: [textAt(index)] }))['vectors']);
    const probe = watchLiveness(server);
    const calls = Array.from({ length: 200 }, (_, index) =>
      server.call('embed', { inputs: [textAt(index)] }).catch((error: unknown) => {
        if (error instanceof RpcError) return error;
        throw error;
      }),
    );
    for (let kill = 0; kill < 4; kill += 1) {
      await Promise.race(calls.slice(kill * 40, kill * 40 + 40));
      const [victim] = executorPids(server.pid);
      if (victim !== undefined) process.kill(victim, 'SIGKILL');
    }
    const answers = await Promise.all(calls);
    expect(await probe.end()).toBe(0);
    const failures = answers.filter((answer) => answer instanceof RpcError);
    expect(failures.every(({ code }) => code === -32010)).toBe(true);
    for (const [index, vectors] of alone) {
      const answer = answers[index];
      if (!(answer instanceof RpcError)) expect(answer?.['vectors']).toEqual(vectors);
    }
    expect(answers).toHaveLength(200);
    await until('ready again', async () => (await status(server, '/health/ready')) === 200, 20_000);
    expect((await server.call('embed', { inputs: [textAt(1)] }))['vectors']).toEqual(alone.get(1));
  });

  it('turn ready to 503 with the reason while none is left, and back once a new one has proved itself', async () => {
    const server = await start(['--executors', '1']);
    expect(await status(server, '/health/ready')).toBe(200);
    for (const pid of executorPids(server.pid)) process.kill(pid, 'SIGKILL');
    let body = '';
    await until(
      '503',
      async () => {
        const response = await fetch(`${server.baseUrl}/health/ready`);
        body = await response.text();
        return response.status === 503;
      },
      5_000,
    );
    expect(body).toContain('cpu:0/0');
    expect(await status(server, '/health/live')).toBe(200);
    const result = await server.call('embed', { inputs: ['served by the new executor'] });
    expect(result['vectors']).toHaveLength(1);
    expect(await status(server, '/health/ready')).toBe(200);
  });

  it('that are stopped are replaced when the bound of a run has passed, and the call is answered', async () => {
    const server = await start(['--executors', '1', '--run-timeout-ms', '1000']);
    const [victim = 0] = executorPids(server.pid);
    process.kill(victim, 'SIGSTOP');
    const result = await server.call('embed', { inputs: ['waits for a new executor'] });
    expect(result['vectors']).toHaveLength(1);
    expect(isAlive(victim)).toBe(false);
  });
});

describe('executors that stand still in the middle of their runs', { timeout: 60_000 }, () => {
  it('hold up nobody else: health, metrics and ping are answered, and the calls go on where they stopped', async () => {
    const server = await start();
    const alone = await server.call('embed', { inputs: [textAt(5)] });
    const pids = executorPids(server.pid);
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const calls = Array.from({ length: 8 }, (_, at) => server.call('embed', { inputs: [textAt(5 + at)] }));
    let settled = 0;
    for (const call of calls) void call.finally(() => (settled += 1));
    for (let round = 0; round < 10; round += 1) {
      for (const path of ['/health/live', '/health/ready', '/metrics']) expect(await status(server, path)).toBe(200);
      const nonce = String(round);
      expect(await server.call('ping', { nonce })).toMatchObject({ nonce });
    }
    expect(settled).toBe(0);
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    const [first, ...others] = await Promise.all(calls);
    expect(first?.['vectors']).toEqual(alone['vectors']);
    expect(others.map((answer) => answer['vectors'])).toEqual(others.map(() => [expect.any(Array)]));
    expect(executorPids(server.pid)).toEqual(pids);
  });
});

describe('the end of the serving process', { timeout: 60_000 }, () => {
  it('by SIGKILL leaves no executor behind', async () => {
    const server = await start();
    const pids = executorPids(server.pid);
    expect(pids.length).toBeGreaterThan(0);
    process.kill(server.pid, 'SIGKILL');
    await until('executors gone', () => !pids.some(isAlive), 10_000);
  });

  it('by SIGTERM under load answers every call, those that came too late with -32010, and exits with 0', async () => {
    const server = await start();
    const pids = executorPids(server.pid);
    const calls = Array.from({ length: 40 }, (_, index) => server.call('embed', { inputs: [textAt(index)] }));
    await Promise.race(calls);
    const code = server.end();
    const settled = await Promise.allSettled(calls);
    const lost = settled.filter(({ status: outcome }) => outcome === 'rejected') as PromiseRejectedResult[];
    expect(lost.map(({ reason }) => (reason as RpcError).code)).toEqual(lost.map(() => -32010));
    expect(lost.length).toBeLessThan(40);
    expect(await code).toBe(0);
    expect(pids.some(isAlive)).toBe(false);
  });
});
