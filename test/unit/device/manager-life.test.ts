import { describe, expect, it } from 'vitest';
import { fakeRows } from '../../support/fake-channel.ts';
import { batchOf, createDevice, isProof, kindOf, limits, plainWish, proofBatch, run, settle, start } from './device.ts';

describe('the restarts of an executor that was ready once', () => {
  it('come for ever, later each time up to a cap', async () => {
    const device = createDevice({ load: (launch) => (launch === 0 ? 'ok' : 'exit') });
    await start(device);
    device.fake.channels[0]?.exit('gone');
    await device.clock.advance(60_000);
    const delays = device.deaths.map((death) => death.restartInMs);
    expect(delays.slice(0, 6)).toEqual([100, 200, 400, 800, 800, 800]);
    expect(device.fake.channels.length).toBeGreaterThan(50);
    expect(device.manager.canServeLater()).toBe(true);
  });

  it('start again with the shortest pause only after it stayed ready for a while', async () => {
    const device = createDevice();
    await start(device);
    const die = async () => {
      device.fake.channels.at(-1)?.exit('gone');
      await device.clock.advance(limits.restartMaxMs);
    };
    await die();
    await die();
    await device.clock.advance(limits.stableAfterMs);
    await die();
    await die();
    expect(device.deaths.map((death) => death.restartInMs)).toEqual([100, 200, 100, 200]);
  });
});

describe('an executor that was killed after it had served many runs', () => {
  it('starts again with the shortest pause', async () => {
    const device = createDevice();
    await start(device);
    const serveAndDie = async (runs: number) => {
      for (let count = 0; count < runs; count += 1) await run(device, batchOf(1));
      device.fake.channels.at(-1)?.exit('gone');
      await device.clock.advance(limits.restartMaxMs);
    };
    await serveAndDie(0);
    await serveAndDie(limits.stableAfterRuns - 1);
    await serveAndDie(limits.stableAfterRuns);
    expect(device.deaths.map((death) => death.restartInMs)).toEqual([100, 200, 100]);
  });
});

describe('values that are not finite', () => {
  it('in several runs in a row have the executor replaced, and ready says why until the new one has proved itself', async () => {
    const device = createDevice({ load: (launch) => (launch === 1 ? 'hang' : 'ok') });
    await start(device);
    const badRun = async () => {
      await run(device, batchOf(1));
      device.manager.reportBadResult('cpu:0/0');
    };
    await badRun();
    await badRun();
    expect(device.manager.readiness().isReady).toBe(true);
    await badRun();
    const saysWhy = () => {
      const { isReady, reasons } = device.manager.readiness();
      expect(isReady).toBe(false);
      expect(reasons.join()).toContain('not finite in 3 runs in a row');
    };
    saysWhy();
    await device.clock.advance(0);
    saysWhy();
    await device.clock.advance(limits.restartBaseMs);
    expect(device.fake.channels).toHaveLength(2);
    saysWhy();
    expect(device.deaths).toHaveLength(1);
    await device.clock.advance(limits.loadTimeoutMs + limits.restartMaxMs);
    expect(device.manager.readiness()).toEqual({ isReady: true, reasons: [] });
    expect(device.deaths.at(-1)?.reason).toContain(`no answer to "load"`);
  });

  it('are forgiven after a good run', async () => {
    const device = createDevice();
    await start(device);
    for (let round = 0; round < 5; round++) {
      device.manager.reportBadResult('cpu:0/0');
      device.manager.reportBadResult('cpu:0/0');
      device.manager.reportGoodResult('cpu:0/0');
    }
    expect(device.manager.readiness().isReady).toBe(true);
    expect(device.fake.channels).toHaveLength(1);
  });

  it('let a run that has begun end before the executor is replaced', async () => {
    let finish = (): void => undefined;
    const device = createDevice({
      run: (batch) =>
        isProof(batch)
          ? fakeRows(batch)
          : new Promise((resolve) => {
              finish = () => {
                resolve(fakeRows(batch));
              };
            }),
      stops: false,
    });
    await start(device);
    const held = run(device, batchOf(1));
    for (let count = 0; count < limits.maxConsecutiveBadResults; count++) device.manager.reportBadResult('cpu:0/0');
    finish();
    expect((await held).rows).toEqual(fakeRows(batchOf(1)));
    expect(device.manager.offer(plainWish)).toBeNull();
    await device.clock.advance(limits.stopTimeoutMs + limits.restartBaseMs);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    expect(device.fake.channels).toHaveLength(2);
  });
});

describe('an executor that nobody used for a while', () => {
  it('proves itself again, and is in service meanwhile', async () => {
    const device = createDevice();
    await start(device);
    await device.clock.advance(limits.reproveIdleMs - 1);
    expect(device.fake.batches).toHaveLength(1);
    await device.clock.advance(1);
    expect(device.fake.batches).toEqual([proofBatch, proofBatch]);
    expect(device.manager.readiness().isReady).toBe(true);
    expect(device.manager.idleCount()).toBe(1);
    await device.clock.advance(limits.reproveIdleMs);
    expect(device.fake.batches).toHaveLength(3);
  });

  it('is not asked while it is in use', async () => {
    const device = createDevice();
    await start(device);
    for (let round = 0; round < 10; round++) {
      await device.clock.advance(limits.reproveIdleMs / 2);
      await run(device, batchOf(1));
    }
    expect(device.fake.batches.filter(isProof)).toHaveLength(1);
  });

  it('is not asked in the middle of a run that began before it was due', async () => {
    const device = createDevice({ run: (batch) => (isProof(batch) ? fakeRows(batch) : 'hang') });
    await start(device);
    await device.clock.advance(limits.reproveIdleMs - 1);
    const held = settle(run(device, batchOf(1)));
    await device.clock.advance(limits.runTimeoutMs - 1);
    expect(device.fake.batches.filter(isProof)).toHaveLength(1);
    expect(device.deaths).toEqual([]);
    await device.clock.advance(1);
    expect(kindOf(await held)).toBe('timedOut');
  });

  it('is replaced when it no longer gives what it gave', async () => {
    let proofs = 0;
    const device = createDevice({ run: (batch) => (++proofs === 2 ? fakeRows(batchOf(5)) : fakeRows(batch)) });
    await start(device);
    await device.clock.advance(limits.reproveIdleMs);
    expect(device.manager.readiness().reasons[0]).toContain('too far from its reference');
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.readiness().isReady).toBe(true);
  });

  it('is replaced when it no longer answers', async () => {
    let proofs = 0;
    const device = createDevice({ run: (batch) => (++proofs === 2 ? 'hang' : fakeRows(batch)) });
    await start(device);
    await device.clock.advance(limits.reproveIdleMs + limits.runTimeoutMs);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.readiness().isReady).toBe(true);
  });
});

describe('the stop of a device', () => {
  it('asks every executor to end and starts none again', async () => {
    const device = createDevice({}, 2);
    await start(device);
    const stopped = device.manager.stop();
    await device.clock.advance(0);
    await stopped;
    expect(device.fake.channels.map((channel) => channel.received.at(-1))).toEqual([
      { type: 'stop' },
      { type: 'stop' },
    ]);
    expect(device.deaths.map((death) => death.restartInMs)).toEqual([null, null]);
    expect(device.manager.canServeLater()).toBe(false);
    expect(device.clock.pendingTimers()).toBe(0);
    await device.clock.advance(3_600_000);
    expect(device.fake.channels).toHaveLength(2);
  });

  it('kills an executor that does not end in time, and fails what it ran', async () => {
    const device = createDevice({ run: (batch) => (isProof(batch) ? fakeRows(batch) : 'hang'), stops: false });
    await start(device);
    const held = settle(run(device, batchOf(1)));
    const stopped = device.manager.stop();
    await device.clock.advance(limits.stopTimeoutMs - 1);
    expect(device.fake.channels[0]?.isKilled()).toBe(false);
    await device.clock.advance(1);
    await stopped;
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    expect(kindOf(await held)).toBe('executorGone');
  });

  it('while an executor is starting, waiting for its restart or gone settles at once', async () => {
    const starting = createDevice({ load: () => 'hang' });
    const started = starting.manager.start();
    const stopped = starting.manager.stop();
    await starting.clock.advance(0);
    await stopped;
    expect((await started).failures).toHaveLength(1);

    const waiting = createDevice();
    await start(waiting);
    waiting.fake.channels[0]?.exit('gone');
    await waiting.clock.advance(0);
    await waiting.manager.stop();
    await waiting.clock.advance(3_600_000);
    expect(waiting.fake.channels).toHaveLength(1);

    const gone = createDevice({ load: () => 'exit' });
    await start(gone);
    await gone.manager.stop();
    await gone.manager.stop();
    expect(gone.manager.canServeLater()).toBe(false);
  });
});
