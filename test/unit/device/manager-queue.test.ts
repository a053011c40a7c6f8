import { describe, expect, it } from 'vitest';
import { fakeRows } from '../../support/fake-channel.ts';
import {
  batchOf,
  createBusy,
  createDevice,
  give,
  limits,
  plainWish,
  queued,
  run,
  start,
  take,
  urgent,
  urgentQueued,
} from './device.ts';
import type { Device } from './device.ts';

describe('a second run', () => {
  it('is given to a busy executor only where the wish allows it', async () => {
    const { device } = await createBusy();
    give(device, 1, plainWish);
    expect(device.manager.offer(plainWish)).toBeNull();
    expect(device.manager.offer(queued)).not.toBeNull();
    give(device, 2, queued);
    expect(device.fake.channels[0]?.received.filter(({ type }) => type === 'run')).toHaveLength(3);
  });

  it.each([true, false])('is not followed by a third of the same urgency (urgent: %s)', async (isUrgent) => {
    const { device, held } = await createBusy();
    const wish = { isUrgent, mayQueue: true };
    give(device, 1, wish);
    give(device, 2, wish);
    expect(device.manager.offer(wish)).toBeNull();
    await held.end(device);
    expect(device.manager.offer(wish)).not.toBeNull();
  });

  it('goes to the executor that would begin it soonest, an idle one before all', async () => {
    const { device, held } = await createBusy({}, 3);
    await device.clock.advance(1);
    // It was ready last, and nobody knows how long it will take: it might be done now.
    const busy = take(device);
    const first = busy.run(batchOf(1), 1).result;
    await held.end(device);
    await first;
    const again = take(device);
    expect(again.executorId).toBe(busy.executorId);
    again.run(batchOf(1), 0).result.catch(() => undefined);
    const other = take(device, queued);
    expect(other.executorId).not.toBe(busy.executorId);
    other.run(batchOf(2), 50).result.catch(() => undefined);
    const third = take(device, queued);
    expect(new Set([busy, other, third].map(({ executorId }) => executorId)).size).toBe(3);
  });

  it('goes to the busy executor that would be done soonest', async () => {
    const { device } = await createBusy({}, 2);
    const slow = take(device);
    slow.run(batchOf(1), 100).result.catch(() => undefined);
    give(device, 2, plainWish, 40);
    expect(device.manager.offer(queued)?.waitMs).toBe(40);
    await device.clock.advance(30);
    expect(device.manager.offer(queued)?.waitMs).toBe(10);
    give(device, 3, queued, 65);
    expect(device.manager.offer(queued)?.waitMs).toBe(70);
    expect(take(device, queued).executorId).toBe(slow.executorId);
  });

  it('waits for that one while it has no room, instead of lying behind a long run', async () => {
    const { device, held } = await createBusy({}, 2);
    give(device, 1, plainWish, 100);
    const short = give(device, 2, plainWish, 10);
    give(device, 3, queued, 5);
    expect(device.manager.offer(queued)).toBeNull();
    await held.end(device);
    expect(short.kind()).toBe('result');
    expect(device.manager.offer(queued)?.waitMs).toBe(5);
  });

  it('goes to another one where that one is later than was thought', async () => {
    const { device } = await createBusy({}, 2);
    const long = take(device);
    long.run(batchOf(1), 100).result.catch(() => undefined);
    give(device, 2, plainWish, 10);
    give(device, 3, queued, 5);
    await device.clock.advance(60);
    expect(take(device, queued).executorId).toBe(long.executorId);
  });

  it('keeps its executor busy after the first was answered, and ready only after both', async () => {
    const { device, held } = await createBusy();
    const [first, second] = [give(device, 1, plainWish), give(device, 2, queued)];
    await held.end(device);
    expect([first.kind(), second.kind()]).toEqual(['result', null]);
    expect([device.manager.idleCount(), device.manager.activeCount()]).toEqual([0, 1]);
    expect(device.moves.at(-1)).toBe('cpu:0/0 ready busy');
    await held.end(device);
    expect(second.kind()).toBe('result');
    expect(device.manager.idleCount()).toBe(1);
    expect(held.begunIds()).toEqual([1, 2]);
  });

  it('has its rows, and not those of the first', async () => {
    const { device, held } = await createBusy();
    const [first, second] = [give(device, 1, plainWish), give(device, 2, queued)];
    await held.end(device);
    await held.end(device);
    expect(await first.outcome).toMatchObject({ rows: fakeRows(batchOf(1)) });
    expect(await second.outcome).toMatchObject({ rows: fakeRows(batchOf(2)) });
  });

  it('may wait behind a proof', async () => {
    let endProof = (): void => undefined;
    let proofs = 0;
    const device = createDevice({
      run: (batch) =>
        ++proofs === 2
          ? new Promise((resolve) => {
              endProof = () => {
                resolve(fakeRows(batch));
              };
            })
          : fakeRows(batch),
    });
    await start(device);
    await device.clock.advance(limits.reproveIdleMs);
    const behind = give(device, 1, queued);
    await device.clock.advance(0);
    expect(behind.kind()).toBeNull();
    endProof();
    await device.clock.advance(0);
    expect(behind.kind()).toBe('result');
    expect(device.manager.idleCount()).toBe(1);
    expect(device.deaths).toEqual([]);
  });

  it('is not given to an executor that has to show that it still can', async () => {
    const { device, held } = await createBusy();
    give(device, 1, plainWish);
    give(device, 2, queued);
    await held.end(device, { failed: 'bad input' });
    expect(device.manager.offer(queued)).toBeNull();
    await held.end(device);
    await device.clock.advance(0);
    expect(device.manager.offer(queued)).not.toBeNull();
  });
});

describe('an urgent run', () => {
  it('is given to a busy executor where something that is not urgent would come first, and comes before that', async () => {
    const { device, held } = await createBusy();
    give(device, 1, plainWish);
    expect(device.manager.offer(urgent)).toBeNull();
    give(device, 2, queued);
    give(device, 3, urgent);
    expect(device.manager.offer(urgentQueued)).toBeNull();
    for (let count = 0; count < 3; count += 1) await held.end(device);
    expect(held.begunIds()).toEqual([1, 3, 2]);
  });

  it('is not given where only urgent ones would come first, unless it may wait', async () => {
    const { device } = await createBusy();
    give(device, 1, urgent);
    expect(device.manager.offer(urgent)).toBeNull();
    expect(device.manager.offer(urgentQueued)).not.toBeNull();
    give(device, 2, queued);
    give(device, 3, urgent);
    expect(device.manager.offer(urgent)).toBeNull();
    expect(device.manager.offer(urgentQueued)).toBeNull();
  });

  it('waits for the run of the moment alone', async () => {
    const { device } = await createBusy();
    give(device, 1, plainWish, 30);
    give(device, 2, queued, 20);
    await device.clock.advance(10);
    expect(device.manager.offer(urgent)?.waitMs).toBe(20);
  });
});

describe('items that nobody waits for any more', () => {
  it('are not run where their run has not begun, and have no row', async () => {
    const { device, held } = await createBusy();
    give(device, 1, plainWish);
    const second = take(device, queued).run(batchOf(2, 3, 4), 1);
    second.skip([0, 2]);
    await held.end(device);
    await held.end(device);
    const rows = [null, fakeRows(batchOf(3))[0], null];
    expect(await second.result).toMatchObject({ rows, paddedTokens: 1 });
  });

  it('cost nothing where they are all of their run', async () => {
    const { device, held } = await createBusy();
    give(device, 1, plainWish);
    const second = give(device, 2, queued);
    second.skip([0]);
    await held.end(device);
    expect(await second.outcome).toMatchObject({ rows: [null], paddedTokens: 0, computeMs: 0 });
    expect(held.begunIds()).toEqual([1]);
    expect(device.manager.idleCount()).toBe(1);
  });

  it('have their row where their run had begun', async () => {
    const { device, held } = await createBusy();
    const first = give(device, 1, plainWish);
    first.skip([0]);
    await held.end(device);
    expect(await first.outcome).toMatchObject({ rows: fakeRows(batchOf(1)) });
  });

  it('are no news to an executor that has answered', async () => {
    const { device, held } = await createBusy();
    const first = give(device, 1, plainWish);
    await held.end(device);
    first.skip([0]);
    expect(device.fake.channels[0]?.received.map(({ type }) => type)).not.toContain('skip');
  });
});

describe('the bound of a run', () => {
  const bounded = { limits: { ...limits, runTimeoutMs: 30_000 } };

  it('counts from when its turn came: two runs of 20 s keep a bound of 30 s', async () => {
    const { device, held } = await createBusy({}, 1, bounded);
    const both = [give(device, 1, plainWish), give(device, 2, queued)];
    await device.clock.advance(20_000);
    await held.end(device);
    await device.clock.advance(20_000);
    await held.end(device);
    expect(both.map(({ kind }) => kind())).toEqual(['result', 'result']);
    expect(device.deaths).toEqual([]);
  });

  it('is not put off by a run that is given meanwhile', async () => {
    const { device } = await createBusy({}, 1, bounded);
    const first = give(device, 1, plainWish);
    await device.clock.advance(20_000);
    give(device, 2, queued);
    await device.clock.advance(10_000);
    expect(first.kind()).toBe('timedOut');
  });

  it('ends the executor when it has passed, whichever run it is', async () => {
    const { device, held } = await createBusy({}, 1, bounded);
    const [, second] = [give(device, 1, plainWish), give(device, 2, queued)];
    await device.clock.advance(20_000);
    await held.end(device);
    await device.clock.advance(29_999);
    expect(device.deaths).toEqual([]);
    await device.clock.advance(1);
    expect(second.kind()).toBe('timedOut');
    expect(device.deaths).toHaveLength(1);
  });

  it('is none for an executor that has answered everything', async () => {
    const { device, held } = await createBusy({}, 1, { limits: { ...limits, reproveIdleMs: 1e9 } });
    give(device, 1, plainWish);
    give(device, 2, queued);
    await held.end(device);
    await held.end(device);
    await device.clock.advance(10 * limits.runTimeoutMs);
    expect(device.deaths).toEqual([]);
  });
});

describe('what runs take of late', () => {
  const timed = (computeMs: number) => ({
    script: { computeMs },
    options: { costOf: () => ({ fixedMs: 0, tokenMs: 1, squaredTokenMs: 0 }) },
  });
  const textMs = (device: Device) => device.manager.shapeOf('m', 'dense').textMs(1);

  it('is what the next ones are expected to take', async () => {
    const { script, options } = timed(3);
    const device = createDevice(script, 1, options);
    await start(device);
    expect(textMs(device)).toBe(1);
    await run(device, batchOf(1));
    expect(textMs(device)).toBe(3);
    // What was expected by then is compared with what the timing said, not with the expectation.
    for (let count = 0; count < 5; count += 1) await take(device).run(batchOf(1), textMs(device)).result;
    expect(textMs(device)).toBeCloseTo(3);
  });

  it('does not follow from runs of which a part was skipped', async () => {
    const { script, options } = timed(3);
    const { device, held } = await createBusy(script, 1, options);
    give(device, 1, plainWish);
    const second = take(device, queued).run(batchOf(2, 3), 2);
    second.skip([1]);
    await held.end(device);
    expect(textMs(device)).toBe(3);
    const before = textMs(device);
    await held.end(device);
    await second.result;
    expect(textMs(device)).toBe(before);
  });
});
