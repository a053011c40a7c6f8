import { describe, expect, it } from 'vitest';
import { fakeRows } from '../../support/fake-channel.ts';
import {
  batchOf,
  createBusy,
  give,
  limits,
  plainWish,
  queued,
  resultMessage,
  urgent,
  urgentQueued,
  type Device,
} from './device.ts';

describe('the death of an executor that has several runs', () => {
  async function createFull() {
    const { device, held } = await createBusy();
    const runs = [give(device, 1, plainWish), give(device, 2, queued), give(device, 3, urgent)];
    return { device, held, kinds: () => runs.map(({ kind }) => kind()) };
  }

  it('fails the run of the moment with its kind, and says of the others that they had not begun', async () => {
    const { device, kinds } = await createFull();
    device.fake.channels[0]?.exit('gone');
    await device.clock.advance(0);
    expect(kinds()).toEqual(['executorGone', 'notStarted', 'notStarted']);
  });

  it('also where another one had begun meanwhile', async () => {
    const { device, held, kinds } = await createFull();
    await held.end(device);
    device.fake.channels[0]?.exit('gone');
    await device.clock.advance(0);
    expect(kinds()).toEqual(['result', 'notStarted', 'executorGone']);
  });

  it('blames the run that hangs', async () => {
    const { device, kinds } = await createFull();
    await device.clock.advance(limits.runTimeoutMs);
    expect(kinds()).toEqual(['timedOut', 'notStarted', 'notStarted']);
  });

  it.each([
    ['outOfMemory', 'outOfMemory', 'it ran out of memory: full'],
    ['deviceLost', 'executorGone', 'it lost its device: full'],
  ] as const)(
    'blames the run whose answer is %s, and not the one that would have been next',
    async (kind, own, why) => {
      const { device, held, kinds } = await createFull();
      await held.end(device, { failed: 'full', kind });
      expect(kinds()).toEqual([own, 'notStarted', 'notStarted']);
      expect(device.deaths.map(({ reason }) => reason)).toEqual([why]);
    },
  );

  it('leaves the others to run where only one failed', async () => {
    const { device, held, kinds } = await createFull();
    await held.end(device, { failed: 'bad input' });
    expect(kinds()).toEqual(['runFailed', null, null]);
    await held.end(device);
    await held.end(device);
    expect(kinds()).toEqual(['runFailed', 'result', 'result']);
    expect(device.deaths).toEqual([]);
  });

  it.each([
    ['answers a run twice', resultMessage(2, fakeRows(batchOf(1)), 3)],
    ['goes on with a run that has been answered', resultMessage(4, fakeRows(batchOf(3)), 2)],
    ['goes on with a run that it was never given', resultMessage(4, fakeRows(batchOf(3)), 5)],
  ])('comes at once where it %s', async (_, message) => {
    const { device, held, kinds } = await createFull();
    await held.end(device);
    device.fake.channels[0]?.emit(message);
    await device.clock.advance(0);
    expect(kinds()).toEqual(['result', 'notStarted', 'executorGone']);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
  });

  it('leaves an executor that is as good as new', async () => {
    const { device, held } = await createFull();
    device.fake.channels[0]?.exit('gone');
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.idleCount()).toBe(1);
    const next = give(device, 7, plainWish);
    expect(device.manager.offer(plainWish)).toBeNull();
    await held.end(device);
    expect(await next.outcome).toMatchObject({ rows: fakeRows(batchOf(7)) });
    expect(device.manager.idleCount()).toBe(1);
  });
});

describe('an executor that is to be replaced while it has two runs', () => {
  const reportBad = (device: Device) => {
    for (let count = 0; count < limits.maxConsecutiveBadResults; count += 1) device.manager.reportBadResult('cpu:0/0');
  };
  const wasAsked = (device: Device) => device.fake.channels[0]?.received.some(({ type }) => type === 'stop');

  it('answers both, takes no other, and then ends', async () => {
    const { device, held } = await createBusy();
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    reportBad(device);
    for (const wish of [plainWish, queued, urgent, urgentQueued]) expect(device.manager.offer(wish)).toBeNull();
    await held.end(device);
    expect(wasAsked(device)).toBe(false);
    // Each has all the time that a run has, which is more than an end may take.
    await device.clock.advance(limits.stopTimeoutMs + 1);
    await held.end(device);
    expect(both.map(({ kind }) => kind())).toEqual(['result', 'result']);
    expect(wasAsked(device)).toBe(true);
    expect(device.deaths).toEqual([
      { reason: expect.stringContaining('not finite') as string, restartInMs: limits.restartBaseMs },
    ]);
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.idleCount()).toBe(1);
  });

  it('is killed where one of them never ends', async () => {
    const { device, held } = await createBusy();
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    reportBad(device);
    await held.end(device);
    await device.clock.advance(limits.runTimeoutMs);
    expect(both.map(({ kind }) => kind())).toEqual(['result', 'timedOut']);
    expect(device.deaths).toHaveLength(1);
  });

  it('ends for good where the device is stopped meanwhile', async () => {
    const { device, held } = await createBusy();
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    reportBad(device);
    const stopped = device.manager.stop();
    await held.end(device);
    await held.end(device);
    await stopped;
    expect(both.map(({ kind }) => kind())).toEqual(['result', 'result']);
    expect(device.fake.channels[0]?.received.filter(({ type }) => type === 'stop')).toHaveLength(1);
    expect(device.manager.canServeLater()).toBe(false);
  });
});

describe('the stop of an executor that is being replaced', () => {
  it('is bounded from when it was asked for, whatever is answered meanwhile', async () => {
    const { device, held } = await createBusy({ stops: false });
    give(device, 1, plainWish);
    for (let count = 0; count < limits.maxConsecutiveBadResults; count += 1) device.manager.reportBadResult('cpu:0/0');
    const stopped = device.manager.stop();
    await device.clock.advance(limits.stopTimeoutMs - 1);
    await held.end(device);
    expect(device.fake.channels[0]?.isKilled()).toBe(false);
    await device.clock.advance(1);
    await stopped;
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
  });
});

describe('the stop of an executor that has two runs', () => {
  it('lets both be answered where that takes no longer than an end may', async () => {
    const { device, held } = await createBusy();
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    const stopped = device.manager.stop();
    await device.clock.advance(limits.stopTimeoutMs - 1);
    await held.end(device);
    await held.end(device);
    await stopped;
    expect(both.map(({ kind }) => kind())).toEqual(['result', 'result']);
    expect(device.deaths).toEqual([{ reason: 'its process ended with exit code 0', restartInMs: null }]);
    expect(device.clock.pendingTimers()).toBe(0);
  });

  it('ends both where it takes longer', async () => {
    const { device } = await createBusy();
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    const stopped = device.manager.stop();
    await device.clock.advance(limits.stopTimeoutMs);
    await stopped;
    expect(both.map(({ kind }) => kind())).toEqual(['executorGone', 'notStarted']);
  });
});
