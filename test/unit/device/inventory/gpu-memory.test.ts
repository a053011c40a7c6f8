import { describe, expect, it } from 'vitest';
import { createGpuMemoryReader, keptMs, memoryInSmi } from '../../../../src/device/inventory/gpu-memory.ts';
import { createFakeClock } from '../../../support/fake-clock.ts';
import { fakeMachine } from '../../../support/fake-machine.ts';

const gpus = [
  { deviceId: 'cuda:0', uuid: 'GPU-2222' },
  { deviceId: 'cuda:1', uuid: 'GPU-1111' },
];
const output = 'GPU-1111, 400, 143771\nGPU-2222, [N/A], 1000\nGPU-3333, 1, 2\n';
const mebibyte = 1_048_576;
const machine = fakeMachine({});

/** A reader whose tool counts how often it was started. */
function countingReader(answers: readonly ({ output: string } | { problem: string })[], known = gpus) {
  const clock = createFakeClock();
  let starts = 0;
  const ask = () => Promise.resolve(answers[Math.min(starts++, answers.length - 1)] ?? { problem: 'none' });
  return { clock, read: createGpuMemoryReader({ gpus: known, machine, clock, ask }), starts: () => starts };
}

describe('the memory of GPUs', () => {
  it('is told by the identifier of the driver, whatever the order, and left out where it is no number', () => {
    expect(memoryInSmi(output, gpus)).toEqual([
      { deviceId: 'cuda:1', usedBytes: 400 * mebibyte, totalBytes: 143_771 * mebibyte },
    ]);
  });

  it.each(['', 'GPU-1111', 'GPU-1111,,', 'GPU-1111, -1, 5', '\u0000,\n'])('is empty where the tool says %j', (text) => {
    expect(memoryInSmi(text, gpus)).toEqual([]);
  });

  it('starts the tool once however many ask, and again after its time', async () => {
    const { clock, read, starts } = countingReader([{ output }]);
    const [first, second] = await Promise.all([read(), read()]);
    expect(first).toEqual(second);
    expect(first).toHaveLength(1);
    expect(starts()).toBe(1);
    await clock.advance(keptMs);
    await read();
    expect(starts()).toBe(2);
  });

  it('is forgotten, not repeated, where the tool fails', async () => {
    const { clock, read } = countingReader([{ output }, { problem: 'it hangs' }]);
    expect(await read()).toHaveLength(1);
    await clock.advance(keptMs);
    expect(await read()).toEqual([]);
  });

  it('starts nothing where no GPU is in use', async () => {
    const { read, starts } = countingReader([{ output }], []);
    expect(await read()).toEqual([]);
    expect(starts()).toBe(0);
  });

  it('is nothing, and no failure, where there is no tool', async () => {
    const read = createGpuMemoryReader({ gpus, machine, clock: createFakeClock() });
    expect(await read()).toEqual([]);
  });
});
