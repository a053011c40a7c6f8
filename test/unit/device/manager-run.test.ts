import { describe, expect, it } from 'vitest';
import { RunFailure } from '../../../src/device/pool.ts';
import { fakeRows } from '../../support/fake-channel.ts';
import type { FakeScript } from '../../support/fake-channel.ts';
import {
  batchOf,
  createDevice,
  isProof,
  kindOf,
  limits,
  plainWish,
  resultMessage,
  run,
  settle,
  start,
  take,
} from './device.ts';

describe('a run', () => {
  it('gives the rows and gives the executor back', async () => {
    const device = createDevice();
    await start(device);
    const executor = take(device);
    expect(device.manager.offer(plainWish)).toBeNull();
    expect(device.manager.activeCount()).toBe(1);
    expect(device.manager.idleCount()).toBe(0);
    expect(await executor.run(batchOf(1, 2), 1).result).toMatchObject({
      rows: fakeRows(batchOf(1, 2)),
      computeMs: 1,
      paddedTokens: 2,
    });
    expect(device.manager.idleCount()).toBe(1);
  });

  it('that fails blames the items, keeps the executor and gives it back', async () => {
    const device = createDevice({ run: (batch) => (isProof(batch) ? fakeRows(batch) : { failed: 'too odd' }) });
    await start(device);
    const outcome = await settle(run(device, batchOf(1)));
    expect(outcome).toBeInstanceOf(RunFailure);
    expect(kindOf(outcome)).toBe('runFailed');
    expect(device.manager.idleCount()).toBe(1);
    expect(device.fake.channels).toHaveLength(1);
  });

  it('happens once for each executor that was taken', async () => {
    const device = createDevice();
    await start(device);
    const executor = take(device);
    await executor.run(batchOf(1), 1).result;
    expect(() => executor.run(batchOf(1), 1)).toThrow('one batch');
  });

  it('goes to the executor that ran last, whose caches are warm, and to another only while that one is busy', async () => {
    const device = createDevice({}, 3);
    await start(device);
    await device.clock.advance(1);
    const first = take(device);
    const second = take(device);
    expect(second.executorId).not.toBe(first.executorId);
    await first.run(batchOf(1), 1).result;
    await device.clock.advance(1);
    await second.run(batchOf(1), 1).result;
    await device.clock.advance(1);
    for (let count = 0; count < 3; count += 1) {
      const executor = take(device);
      expect(executor.executorId).toBe(second.executorId);
      await executor.run(batchOf(1), 1).result;
    }
  });
});

/** A script whose real runs meet `fault` on the first executor only. */
const faultOnce = (fault: 'exit' | 'hang' | { raw: unknown }): FakeScript => ({
  run: (batch, launch) => (isProof(batch) || launch > 0 ? fakeRows(batch) : fault),
});

describe('an executor that fails in a run', () => {
  it.each([
    ['exits', 'exit', 'executorGone', 0],
    ['hangs', 'hang', 'timedOut', limits.runTimeoutMs],
    ['answers another run', { raw: resultMessage(999, fakeRows(batchOf(1))) }, 'executorGone', 0],
    ['goes on with another run', { raw: resultMessage(2, fakeRows(batchOf(1)), 999) }, 'executorGone', 0],
    ['goes on with the run that it answers', { raw: resultMessage(2, fakeRows(batchOf(1)), 2) }, 'executorGone', 0],
    ['answers with too few rows', { raw: resultMessage(2, []) }, 'executorGone', 0],
    ['leaves out what was not skipped', { raw: resultMessage(2, [null]) }, 'executorGone', 0],
    ['answers with something else', { raw: 42 }, 'executorGone', 0],
  ] as const)(
    'because it %s fails the run, is replaced, and ready says so meanwhile',
    async (_name, fault, kind, ms) => {
      const device = createDevice(faultOnce(fault));
      await start(device);
      let launchesAtFailure = 0;
      const lost = settle(run(device, batchOf(1))).then((outcome) => {
        launchesAtFailure = device.fake.channels.length;
        return outcome;
      });
      await device.clock.advance(ms);
      expect(kindOf(await lost)).toBe(kind);
      expect(launchesAtFailure).toBe(1);
      expect(device.manager.readiness().isReady).toBe(false);
      expect(device.manager.readiness().reasons).toHaveLength(1);
      expect(device.manager.canServeLater()).toBe(true);
      expect(device.manager.report().state).toBe('down');
      expect(device.manager.offer(plainWish)).toBeNull();
      await device.clock.advance(limits.restartBaseMs);
      expect(device.fake.channels).toHaveLength(2);
      expect(device.manager.readiness()).toEqual({ isReady: true, reasons: [] });
      expect(kindOf(await settle(run(device, batchOf(1))))).toBe('result');
    },
  );

  it('never has its late reply delivered', async () => {
    const device = createDevice({ run: (batch, launch) => (isProof(batch) || launch > 0 ? fakeRows(batch) : 'hang') });
    await start(device);
    const lost = settle(run(device, batchOf(1)));
    await device.clock.advance(limits.runTimeoutMs + limits.restartBaseMs);
    const next = run(device, batchOf(7));
    device.fake.channels[0]?.emit(resultMessage(2, fakeRows(batchOf(1))));
    await device.clock.advance(0);
    expect(kindOf(await lost)).toBe('timedOut');
    expect((await next).rows).toEqual(fakeRows(batchOf(7)));
    expect(device.manager.readiness().isReady).toBe(true);
  });

  it('between two runs is replaced as well', async () => {
    const device = createDevice();
    await start(device);
    device.fake.channels[0]?.exit('its process was ended by SIGKILL');
    await device.clock.advance(0);
    expect(device.manager.readiness()).toEqual({
      isReady: false,
      reasons: ['Executor cpu:0/0 is down, because its process was ended by SIGKILL.'],
    });
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.readiness().isReady).toBe(true);
  });

  it('after it was taken fails the run that comes', async () => {
    const device = createDevice();
    await start(device);
    const executor = take(device);
    device.fake.channels[0]?.exit('gone');
    await device.clock.advance(0);
    expect(kindOf(await settle(executor.run(batchOf(1), 1).result))).toBe('notStarted');
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.idleCount()).toBe(1);
  });

  it('is killed when it says something that nobody asked for', async () => {
    const device = createDevice();
    await start(device);
    device.fake.channels[0]?.emit(resultMessage(1, fakeRows(batchOf(99))));
    await device.clock.advance(0);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    expect(device.deaths[0]?.reason).toContain('nobody asked for');
  });
});
