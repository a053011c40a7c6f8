import { describe, expect, it } from 'vitest';
import { memoryMarks, residentBytesOf, watchMemory } from '../../../src/device/memory.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import {
  batchOf,
  createBusy,
  createDevice,
  give,
  isProof,
  kindOf,
  limits,
  plainWish,
  queued,
  run,
  settle,
  start,
  take,
  urgent,
} from './device.ts';

const provedBytes = 100 * 1_048_576;
const { recycleBytes, endBytes } = memoryMarks(provedBytes, 0);

describe('the marks of an executor', () => {
  it('are the bound of the operator, or what follows from what it needed, and always leave room for a run', () => {
    expect(recycleBytes).toBeGreaterThan(2 * provedBytes);
    expect(memoryMarks(provedBytes, 3 * provedBytes).recycleBytes).toBe(3 * provedBytes);
    expect(memoryMarks(provedBytes, 1).recycleBytes).toBeGreaterThan(provedBytes + 100 * 1_048_576);
    expect(endBytes).toBeGreaterThan(recycleBytes);
  });
});

describe('an executor whose memory has grown above its mark', () => {
  const grown = (executors: number) => {
    let bytes = provedBytes;
    const device = createDevice({ residentBytes: (batch) => (isProof(batch) ? provedBytes : bytes) }, executors);
    return { device, grow: (to: number) => (bytes = to) };
  };

  it('is replaced between two runs, at once and without counting as a failure', async () => {
    const { device, grow } = grown(1);
    await start(device);
    await device.clock.advance(limits.stableAfterMs);
    grow(recycleBytes + 1);
    const outcome = await settle(run(device, batchOf(1)));
    expect(kindOf(outcome)).toBe('result');
    await device.clock.advance(0);
    expect(device.deaths).toEqual([{ reason: expect.stringContaining('its memory grew to'), restartInMs: 0 }]);
    expect(device.manager.idleCount()).toBe(1);
    expect(device.fake.channels).toHaveLength(2);
  });

  it('so soon that it would be for ever is replaced with a growing pause, like one that fails', async () => {
    const { device, grow } = grown(1);
    await start(device);
    grow(recycleBytes + 1);
    for (let life = 0; life < 3; life += 1) {
      await run(device, batchOf(1));
      await device.clock.advance(limits.restartMaxMs);
    }
    expect(device.deaths.map(({ restartInMs }) => restartInMs)).toEqual([100, 200, 400]);
  });

  it('stays as long as it is below the mark', async () => {
    const { device, grow } = grown(1);
    await start(device);
    grow(recycleBytes);
    await run(device, batchOf(1));
    await device.clock.advance(0);
    expect(device.fake.channels).toHaveLength(1);
  });

  it('answers all that it was given before it ends, however long that takes', async () => {
    let bytes = provedBytes;
    const { device, held } = await createBusy({ residentBytes: (batch) => (isProof(batch) ? provedBytes : bytes) });
    await device.clock.advance(limits.stableAfterMs);
    bytes = recycleBytes + 1;
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    await held.end(device);
    expect([device.manager.offer(queued), device.manager.offer(urgent)]).toEqual([null, null]);
    await device.clock.advance(limits.stopTimeoutMs + 1);
    expect(device.deaths).toEqual([]);
    await held.end(device);
    expect(both.map(({ kind }) => kind())).toEqual(['result', 'result']);
    expect(device.deaths).toEqual([{ reason: expect.stringContaining('its memory grew to'), restartInMs: 0 }]);
    await device.clock.advance(0);
    expect(device.manager.idleCount()).toBe(1);
  });

  it('waits until another one is ready, so that somebody always serves', async () => {
    const { device, grow } = grown(2);
    await start(device);
    await device.clock.advance(limits.stableAfterMs);
    grow(recycleBytes + 1);
    const [first, second] = [take(device), take(device)];
    await Promise.all([first.run(batchOf(1), 1).result, second.run(batchOf(1), 1).result]);
    expect(device.manager.activeCount()).toBe(1);
    await device.clock.advance(0);
    expect(device.manager.activeCount()).toBe(2);
    await Promise.all([run(device, batchOf(1)), run(device, batchOf(1))]);
    expect(device.manager.activeCount()).toBe(1);
  });

  it('is ended in the middle of a run where it grows without end', async () => {
    let resident = provedBytes;
    const device = createDevice(
      { residentBytes: provedBytes, run: (batch) => (isProof(batch) ? [row(99)] : 'hang') },
      1,
      {
        residentBytesOf: () => resident,
        launch: (id) => ({ ...device.fake.launch(id), pid: 1 }),
      },
    );
    await start(device);
    const held = settle(run(device, batchOf(1)));
    resident = endBytes + 1;
    await device.clock.advance(999);
    expect(device.deaths).toHaveLength(0);
    await device.clock.advance(1);
    expect(kindOf(await held)).toBe('executorGone');
    expect(device.deaths[0]?.reason).toContain('its memory grew to');
  });
});

const row = (value: number) => ({ values: Float32Array.of(value, 1), indices: null });

describe('the memory of a process', () => {
  it.skipIf(process.platform !== 'linux')('is read from the kernel, and is unknown where the process is gone', () => {
    const bytes = residentBytesOf(process.pid);
    expect(bytes).toBeGreaterThan(10_000_000);
    expect(Math.abs((bytes ?? 0) - process.memoryUsage.rss())).toBeLessThan(50_000_000);
    expect(residentBytesOf(2 ** 30)).toBeNull();
  });

  it('is looked at no more once the watch is cancelled or the process is gone', async () => {
    const clock = createFakeClock();
    const reads: number[] = [];
    const watch = (bytes: number | null) =>
      watchMemory({
        clock,
        pid: 1,
        read: (pid) => {
          reads.push(pid);
          return bytes;
        },
        intervalMs: 10,
        maxBytes: 5,
        onOver: () => undefined,
      });
    const cancel = watch(1);
    await clock.advance(25);
    cancel();
    await clock.advance(100);
    expect(reads).toHaveLength(2);
    watch(null);
    await clock.advance(100);
    expect(reads).toHaveLength(3);
    watch(6);
    await clock.advance(100);
    expect(reads).toHaveLength(4);
  });
});
