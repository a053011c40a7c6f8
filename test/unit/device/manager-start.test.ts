import { describe, expect, it } from 'vitest';
import { fakeRows } from '../../support/fake-channel.ts';
import { batchOf, createDevice, isProof, limits, proofBatch, run, settle, start, take } from './device.ts';

describe('the start of a device', () => {
  it('is over when every executor has loaded, run its proof and become ready', async () => {
    const device = createDevice({}, 2);
    expect(device.manager.readiness().isReady).toBe(false);
    expect(device.manager.report().state).toBe('starting');
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
    expect(device.manager.report().state).toBe('down');
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
    expect((await started).failures[0]?.reason).toContain(`within ${boundMs} ms`);
    expect(device.fake.channels[0]?.isKilled()).toBe(true);
    expect(device.manager.canServeLater()).toBe(false);
  });

  it('fails where the executor cannot even be launched', async () => {
    const device = createDevice({}, 1, {
      launch: () => {
        throw new Error('no process left');
      },
    });
    expect((await device.manager.start()).failures[0]?.reason).toContain('no process left');
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
    const device = createDevice({ executionProvider: 'cuda' }, 3, { provider: { name: 'cuda', deviceIndex: 0 } });
    await start(device);
    expect(device.manager.report()).toEqual({
      id: 'cpu:0',
      executionProvider: 'cuda',
      name: 'A CPU',
      precision: 'int8',
      state: 'ready',
      serves: ['embed'],
    });
  });
});

describe('an executor that dies during the first start', () => {
  it('goes on trying where another one of its device has proved that it can be done', async () => {
    const device = createDevice({ load: (launch) => (launch === 0 ? 'exit' : 'ok') }, 2);
    expect(await start(device)).toEqual([expect.stringContaining('exit code 1')]);
    expect(device.manager.activeCount()).toBe(1);
    expect(device.deaths.map(({ restartInMs }) => restartInMs)).toEqual([null, limits.restartBaseMs]);
    await device.clock.advance(limits.restartBaseMs);
    expect(device.manager.activeCount()).toBe(2);
  });

  it('is given up where no other one can', async () => {
    const device = createDevice({ load: () => 'exit' }, 2);
    expect(await start(device)).toHaveLength(2);
    await device.clock.advance(limits.restartMaxMs);
    expect(device.fake.channels).toHaveLength(2);
    expect(device.manager.canServeLater()).toBe(false);
  });

  it('stays away once the device was stopped', async () => {
    const device = createDevice({ load: (launch) => (launch === 0 ? 'exit' : 'ok') }, 2);
    await start(device);
    const stopped = device.manager.stop();
    await device.clock.advance(limits.restartMaxMs);
    await stopped;
    expect(device.fake.channels).toHaveLength(2);
  });
});

describe('an executor that left computing to the CPU', () => {
  const webgpu = { provider: { name: 'webgpu', deviceIndex: 0 } } as const;

  it('is not taken, and the model and the nodes are named', async () => {
    const foreignNodes = ['a (MatMul)', 'b (Softmax)', 'c (MatMul)', 'd (Gelu)', 'e (Gelu)'];
    const placements = [
      { modelId: 'fine', foreignNodes: [] },
      { modelId: 'm', foreignNodes },
    ];
    const device = createDevice({ executionProvider: 'webgpu', placements }, 1, webgpu);
    const [failure] = await start(device);
    expect(failure).toContain('webgpu cannot compute all of m: a (MatMul), b (Softmax), c (MatMul) and 2 others');
  });

  it('or took another provider than it was asked for, is not taken', async () => {
    const [failure] = await start(createDevice({ executionProvider: 'cpu' }, 1, webgpu));
    expect(failure).toContain('webgpu was asked for, and cpu took the models');
  });
});

describe('a run that failed', () => {
  it('has its executor prove itself before it waits again', async () => {
    const device = createDevice({ run: (batch) => (isProof(batch) ? fakeRows(batch) : { failed: 'bad input' }) });
    await start(device);
    const proofs = () => device.fake.batches.filter(isProof).length;
    const before = proofs();
    await settle(run(device, batchOf(1)));
    await device.clock.advance(0);
    expect(proofs()).toBe(before + 1);
    expect(device.manager.idleCount()).toBe(1);
  });
});
