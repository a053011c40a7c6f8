import { describe, expect, it } from 'vitest';
import { batchOf, createBusy, createDevice, isProof, run, start } from './device.ts';

describe('the reports of executors', () => {
  it('say of each its device, its state, and its memory as it said last', async () => {
    let bytes = 100;
    const device = createDevice({ residentBytes: () => bytes }, 2);
    expect(device.manager.executorReports()).toEqual([
      { deviceId: 'cpu:0', executorId: 'cpu:0/0', state: 'dead', residentBytes: null },
      { deviceId: 'cpu:0', executorId: 'cpu:0/1', state: 'dead', residentBytes: null },
    ]);
    await start(device);
    expect(device.manager.executorReports()).toMatchObject([
      { state: 'ready', residentBytes: 100 },
      { state: 'ready', residentBytes: 100 },
    ]);
    bytes = 150;
    await run(device, batchOf(1));
    const said = device.manager.executorReports().map(({ residentBytes }) => residentBytes);
    expect(said.toSorted()).toEqual([100, 150]);
  });

  it('say busy while an executor runs, and nothing of the memory of one that has ended', async () => {
    const { device } = await createBusy({ residentBytes: (batch) => (isProof(batch) ? 7 : 8) });
    const running = run(device, batchOf(1)).catch(() => undefined);
    expect(device.manager.executorReports()).toMatchObject([{ state: 'busy', residentBytes: 7 }]);
    device.fake.channels[0]?.exit('killed');
    await running;
    expect(device.manager.executorReports()).toMatchObject([{ state: 'dead', residentBytes: null }]);
  });
});
