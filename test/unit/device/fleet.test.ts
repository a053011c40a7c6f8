import { describe, expect, it } from 'vitest';
import { createDeviceFleet } from '../../../src/device/fleet.ts';
import type { RunCost } from '../../../src/device/cost-model.ts';
import { fakeRows, type FakeScript } from '../../support/fake-channel.ts';
import { batchOf, createDevice, isProof, plainWish } from './device.ts';

/** A device whose runs take so long for each token, as far as is known. */
const deviceOf = (deviceId: string, tokenMs: number, script: FakeScript = {}) => {
  const cost: RunCost = { fixedMs: 0, tokenMs, squaredTokenMs: 0 };
  return createDevice(script, 1, { deviceId, costOf: () => cost });
};

function createFleet() {
  const ranker = createDevice({}, 1, { deviceId: 'cpu:0' });
  const first = createDevice({}, 1, { deviceId: 'cuda:0' });
  const second = createDevice({}, 1, { deviceId: 'cuda:1' });
  const fleet = createDeviceFleet([
    { device: ranker.manager, modelIds: new Set(['ranker']) },
    { device: first.manager, modelIds: new Set(['m']) },
    { device: second.manager, modelIds: new Set(['m']) },
  ]);
  return { fleet, first, second, all: [ranker, first, second] };
}

async function startAll({ fleet, all }: Pick<ReturnType<typeof createFleet>, 'fleet' | 'all'>) {
  const started = fleet.start();
  for (const { clock } of all) await clock.advance(0);
  return started;
}

describe('several devices', () => {
  it('each run only the models that they have', async () => {
    const rig = createFleet();
    await startAll(rig);
    const taken = [
      rig.fleet.take('m', plainWish),
      rig.fleet.take('m', plainWish),
      rig.fleet.take('m', plainWish),
      rig.fleet.take('ranker', plainWish),
    ];
    expect(taken.map((executor) => executor?.deviceId ?? null)).toEqual(['cuda:0', 'cuda:1', null, 'cpu:0']);
    expect(rig.fleet.take('unknown', plainWish)).toBeNull();
    expect(rig.fleet.canServeLater('unknown')).toBe(false);
  });

  it('count their executors for each model', async () => {
    const rig = createFleet();
    await startAll(rig);
    expect([rig.fleet.activeCount(), rig.fleet.activeCount('m'), rig.fleet.activeCount('ranker')]).toEqual([3, 2, 1]);
    rig.fleet.take('m', plainWish);
    expect([rig.fleet.activeCount('m'), rig.fleet.idleCount('m')]).toEqual([2, 1]);
  });

  it('have room for a model where one of those that have it has', async () => {
    const rig = createFleet();
    await startAll(rig);
    const rooms = () => ['m', 'ranker', 'unknown'].map((modelId) => rig.fleet.hasRoom(modelId, plainWish));
    expect(rooms()).toEqual([true, true, false]);
    rig.fleet.take('m', plainWish);
    expect(rooms()).toEqual([true, true, false]);
    rig.fleet.take('m', plainWish);
    expect(rooms()).toEqual([false, true, false]);
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

describe('work that several devices can do', () => {
  async function createPair() {
    const hang: FakeScript = { run: (batch) => (isProof(batch) ? fakeRows(batch) : 'hang') };
    const slow = deviceOf('cpu:0', 1, hang);
    const fast = deviceOf('cuda:0', 0.25, hang);
    const all = [slow, fast];
    const fleet = createDeviceFleet(all.map(({ manager }) => ({ device: manager, modelIds: new Set(['m']) })));
    await startAll({ fleet, all });
    const give = (expectedMs: number, isUrgent = false) => {
      const taken = fleet.take('m', { isUrgent, mayQueue: true });
      taken?.run(batchOf(1), expectedMs).result.catch(() => undefined);
      return taken?.deviceId ?? null;
    };
    return { fleet, fast, give };
  }

  it('goes to the one that would finish soonest: a fast one that is nearly done, else a slow one that is idle', async () => {
    const { give } = await createPair();
    // 128 tokens take 32 ms on the fast one, 128 ms on the slow one.
    expect(give(95)).toBe('cuda:0');
    expect(give(1)).toBe('cuda:0');

    const other = await createPair();
    expect(other.give(97)).toBe('cuda:0');
    expect(other.give(1)).toBe('cpu:0');
  });

  it('goes elsewhere the longer a device is late', async () => {
    const { fast, give } = await createPair();
    expect(give(10)).toBe('cuda:0');
    await fast.clock.advance(10 + 97);
    expect(give(1)).toBe('cpu:0');
  });

  it('waits for the one that would finish soonest and has no room, unless another one is idle', async () => {
    const { give, fast } = await createPair();
    expect([give(500), give(1)]).toEqual(['cuda:0', 'cpu:0']);
    // The fast one is done in a moment: its place in the queue is taken first.
    await fast.clock.advance(495);
    expect(give(5)).toBe('cuda:0');
    expect(give(1)).toBeNull();
    // The longer it is late, the less is to be won by waiting.
    await fast.clock.advance(200);
    expect(give(1)).toBe('cpu:0');
  });

  it('takes what the fastest device takes for a text', async () => {
    const { fleet } = await createPair();
    expect(fleet.textMs('m', 'dense', 100)).toBe(25);
    expect(fleet.textMs('m', null, 8)).toBe(2);
  });
});
