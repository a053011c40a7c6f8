import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import {
  batchOf,
  dimension,
  endDevices,
  entryPath,
  failureOf,
  processTestTimeoutMs,
  removeCache,
  root,
  rowOf,
  run,
  startDevice,
  textOf,
} from '../unit/executor/real-device.ts';
import type { Device } from '../unit/executor/real-device.ts';

/** Bound of a run where the test waits for it to pass. @unit ms */
const shortRunTimeoutMs = 1_000;

afterEach(endDevices);
afterAll(removeCache);

/** Resolves at the first moment from now on at which an executor is ready. */
function becomesReady({ manager }: Device): Promise<void> {
  return new Promise((resolve) => {
    manager.onChange(() => {
      if (manager.readiness().isReady) resolve();
    });
  });
}

describe('a real executor that fails', { timeout: processTestTimeoutMs }, () => {
  it('by being killed in the middle of a run is replaced, and the new one gives the same bits', async () => {
    const started = await startDevice();
    const before = await rowOf(started, 'dense', textOf(30, 1));
    const long = run(
      started,
      batchOf(
        'dense',
        Array.from({ length: 2_000 }, (_, seed) => textOf(256, seed)),
      ),
    );
    const ready = becomesReady(started);
    process.kill(started.pids[0] ?? 0, 'SIGKILL');
    expect(await failureOf(long)).toMatchObject({ kind: 'executorGone' });
    expect(started.manager.readiness().isReady).toBe(false);
    await ready;
    expect(started.pids).toHaveLength(2);
    expect(await rowOf(started, 'dense', textOf(30, 1))).toEqual(before);
  });

  it('by being stopped is killed when the bound of a run has passed, and replaced', async () => {
    const started = await startDevice({ runTimeoutMs: shortRunTimeoutMs });
    const ready = becomesReady(started);
    process.kill(started.pids[0] ?? 0, 'SIGSTOP');
    const failure = await failureOf(run(started, batchOf('dense', [textOf(5, 1)])));
    expect(failure).toMatchObject({ kind: 'timedOut' });
    await ready;
    expect(started.exits).toEqual(['its process was ended by SIGKILL']);
    expect((await rowOf(started, 'dense', textOf(5, 1))).values).toHaveLength(dimension);
  });

  it('does not end by the signals that reach its whole group', async () => {
    const started = await startDevice();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.kill(started.pids[0] ?? 0, signal);
    expect((await rowOf(started, 'dense', textOf(5, 1))).values).toHaveLength(dimension);
    expect(started.exits).toEqual([]);
  });
});

describe('a process whose parent was killed', { timeout: processTestTimeoutMs }, () => {
  let orphan = 0;
  let parent: ChildProcess | null = null;
  afterEach(() => {
    parent?.kill('SIGKILL');
    try {
      if (orphan !== 0) process.kill(orphan, 'SIGKILL');
    } catch {
      // It is gone, as it should be.
    }
  });

  /** Starts a parent that prints its child's pid and then idles; both hold the write end of its stderr. */
  async function startParent(code: string): Promise<ChildProcess> {
    const started = spawn(process.execPath, ['--input-type=module', '-e', `${code}\nsetInterval(() => {}, 1e6);`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    parent = started;
    const [chunk] = (await once(started.stderr, 'data')) as [Buffer];
    orphan = Number(/pid (\d+)/.exec(chunk.toString())?.[1]);
    expect(orphan).toBeGreaterThan(0);
    return started;
  }

  it('ends, when it is an executor', async () => {
    const started = await startParent(`
      const { forkExecutor } = await import(${JSON.stringify(join(root, 'dist/device/channel.js'))});
      const channel = forkExecutor(${JSON.stringify(entryPath)})('orphan');
      channel.onMessage(() => process.stderr.write('pid ' + channel.pid + '\\n'));
      channel.send({ type: 'load', models: [], threads: 1, provider: { name: 'cpu', deviceIndex: 0 },
        timedHeads: [] });`);
    started.kill('SIGKILL');
    // Closed only when nobody holds the write end any more: the child is gone too.
    expect(await once(started, 'close')).toEqual([null, 'SIGKILL']);
  });

  it('ends, even while its main thread never gives way', async () => {
    const watch = JSON.stringify(join(root, 'dist/executor/parent-watch.js'));
    const blocked = `
      const { watchParent } = await import(${watch});
      await watchParent(process.ppid);
      process.stderr.write('pid ' + process.pid + '\\n');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
    const started = await startParent(`
      const { spawn } = await import('node:child_process');
      spawn(process.execPath, ['--input-type=module', '-e', ${JSON.stringify(blocked)}], { stdio: ['ignore', 2, 2] });`);
    started.kill('SIGKILL');
    expect(await once(started, 'close')).toEqual([null, 'SIGKILL']);
  });
});
