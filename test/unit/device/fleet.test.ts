import { describe, expect, it } from 'vitest';
import { createDeviceFleet } from '../../../src/device/fleet.ts';
import { batchOf, createDevice } from './device.ts';

function createFleet() {
  const slow = createDevice({}, 1, { deviceId: 'cpu:0' });
  const first = createDevice({}, 1, { deviceId: 'cuda:0' });
  const second = createDevice({}, 1, { deviceId: 'cuda:1' });
  const fleet = createDeviceFleet([
    { device: slow.manager, modelIds: new Set(['ranker']) },
    { device: first.manager, modelIds: new Set(['m']) },
    { device: second.manager, modelIds: new Set(['m']) },
  ]);
  return { fleet, slow, first, second, all: [slow, first, second] };
}

async function startAll({ fleet, all }: ReturnType<typeof createFleet>) {
  const started = fleet.start();
  for (const { clock } of all) await clock.advance(0);
  return started;
}

describe('several devices', () => {
  it('each run only the models that they have', async () => {
    const rig = createFleet();
    await startAll(rig);
    const taken = [rig.fleet.take('m'), rig.fleet.take('m'), rig.fleet.take('m'), rig.fleet.take('ranker')];
    expect(taken.map((executor) => executor?.deviceId ?? null)).toEqual(['cuda:0', 'cuda:1', null, 'cpu:0']);
    expect(rig.fleet.take('unknown')).toBeNull();
    expect(rig.fleet.canServeLater('unknown')).toBe(false);
  });

  it('count their executors for each model', async () => {
    const rig = createFleet();
    await startAll(rig);
    expect([rig.fleet.activeCount(), rig.fleet.activeCount('m'), rig.fleet.activeCount('ranker')]).toEqual([3, 2, 1]);
    rig.fleet.take('m');
    expect([rig.fleet.activeCount('m'), rig.fleet.idleCount('m')]).toEqual([2, 1]);
  });

  it('that are both idle share by their speed, and one that never ran is tried', async () => {
    const rig = createFleet();
    await startAll(rig);
    await rig.fleet.take('m')?.run(batchOf(1));
    expect(rig.fleet.take('m')?.deviceId).toBe('cuda:1');
  });

  it('are ready while every model has an executor that can run, and say why where one has none', async () => {
    const rig = createFleet();
    await startAll(rig);
    rig.first.fake.channels[0]?.exit('its process was ended by SIGKILL');
    await rig.first.clock.advance(0);
    expect(rig.fleet.readiness()).toEqual({ isReady: true, reasons: [] });
    rig.second.fake.channels[0]?.exit('its process was ended by SIGKILL');
    await rig.second.clock.advance(0);
    const { isReady, reasons } = rig.fleet.readiness();
    expect(isReady).toBe(false);
    expect(reasons.join()).toMatch(/cuda:0\/0 is down.*cuda:1\/0 is down/su);
    expect(reasons.join()).not.toContain('cpu:0');
    expect(rig.fleet.reports().map(({ id, state }) => [id, state])).toEqual([
      ['cpu:0', 'ready'],
      ['cuda:0', 'down'],
      ['cuda:1', 'down'],
    ]);
  });

  it('tell a bad result to the device that gave it', async () => {
    const rig = createFleet();
    await startAll(rig);
    for (let run = 0; run < 3; run += 1) rig.fleet.reportBadResult('cuda:1/0');
    expect([rig.first, rig.second].map(({ manager }) => manager.activeCount())).toEqual([1, 0]);
  });
});
