import { describe, expect, it } from 'vitest';
import { createDeviceManager } from '../../../src/device/manager.ts';
import { fakeRows } from '../../support/fake-channel.ts';
import { batchOf, createDevice, limits, proofBatch, start, take } from './device.ts';

describe('the start of a device', () => {
  it('is over when every executor has loaded, run its proof and become ready', async () => {
    const device = createDevice({}, 2);
    expect(device.manager.readiness().isReady).toBe(false);
    expect(device.manager.reports()[0]?.state).toBe('starting');
    expect(await start(device)).toEqual([]);
    expect(device.fake.batches).toEqual([proofBatch, proofBatch]);
    expect(device.proved).toEqual(['cpu:0/0', 'cpu:0/1']);
    expect(device.manager.readiness()).toEqual({ isReady: true, reasons: [] });
    expect(device.manager.idleCount()).toBe(2);
    expect(device.moves.filter((move) => move.startsWith('cpu:0/0'))).toEqual([
      'cpu:0/0 dead starting',
      'cpu:0/0 starting warming',
      'cpu:0/0 warming ready',
    ]);
  });

  it.each([
    ['a model that does not load', { load: () => ({ failed: 'the file is cut short' }) as const }, 'cut short'],
    ['an executor that exits while it loads', { load: () => 'exit' as const }, 'exit code 1'],
    ['an executor that exits while it proves itself', { run: () => 'exit' as const }, 'exit code 1'],
    ['a proof run that fails', { run: () => ({ failed: 'no kernel' }) }, 'no kernel'],
    ['a proof that is refused', { run: () => fakeRows(batchOf(5)) }, 'too far from its reference'],
    ['garbage as a proof', { run: () => ({ raw: 'x' }) }, 'not a message'],
  ])('fails for good, without a restart, on %s', async (_name, script, reason) => {
    const device = createDevice(script);
    const failures = await start(device);
    expect(failures).toHaveLength(1);
    expect(failures[0]).toContain('cpu:0/0');
    expect(failures[0]).toContain(reason);
    expect(device.manager.canServeLater()).toBe(false);
    expect(device.manager.reports()[0]?.state).toBe('down');
    await device.clock.advance(3_600_000);
    expect(device.fake.channels).toHaveLength(1);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    expect(device.clock.pendingTimers()).toBe(0);
    expect(device.manager.readiness().reasons[0]).toContain(reason);
  });

  it.each([
    ['load', { load: () => 'hang' as const }, limits.loadTimeoutMs],
    ['proof', { run: () => 'hang' as const }, limits.runTimeoutMs],
  ])('fails for good when the %s takes longer than its bound', async (_name, script, boundMs) => {
    const device = createDevice(script);
    const started = device.manager.start();
    await device.clock.advance(boundMs - 1);
    expect(device.fake.channels[0]?.isKilled()).toBe(false);
    await device.clock.advance(1);
    expect((await started).failures[0]).toContain(`within ${boundMs} ms`);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    expect(device.manager.canServeLater()).toBe(false);
  });

  it('fails where the executor cannot even be launched', async () => {
    const device = createDevice();
    const manager = createDeviceManager({
      deviceId: 'cpu:0',
      deviceName: 'A CPU',
      precision: 'int8',
      serves: [],
      executors: 1,
      threads: 1,
      launch: () => {
        throw new Error('no process left');
      },
      models: [],
      proofRuns: [],
      clock: device.clock,
      random: () => 0,
      limits,
      observer: { onMoved: () => undefined, onProved: () => undefined, onDied: () => undefined },
    });
    expect((await manager.start()).failures[0]).toContain('no process left');
  });

  it('leaves the executors that proved themselves in service when another one did not', async () => {
    const device = createDevice({ load: (launch) => (launch === 0 ? 'exit' : 'ok') }, 2);
    expect(await start(device)).toHaveLength(1);
    expect(device.manager.canServeLater()).toBe(true);
    expect(device.manager.readiness().isReady).toBe(true);
    expect(device.manager.activeCount()).toBe(1);
    expect(take(device).executorId).toBe('cpu:0/1');
  });

  it('tells the listeners when nothing can be served any more', async () => {
    const device = createDevice({ load: () => 'exit' });
    const seen: boolean[] = [];
    device.manager.onChange(() => seen.push(device.manager.canServeLater()));
    await start(device);
    expect(seen).toEqual([false]);
  });
});

describe('the report of a device', () => {
  it('is one line whatever the number of executors, with what the executor said it runs on', async () => {
    const device = createDevice({ executionProvider: 'elsewhere' }, 3);
    await start(device);
    expect(device.manager.reports()).toEqual([
      {
        id: 'cpu:0',
        executionProvider: 'elsewhere',
        name: 'A CPU',
        precision: 'int8',
        state: 'ready',
        serves: ['embed'],
      },
    ]);
  });
});
