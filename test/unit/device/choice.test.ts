import { describe, expect, it } from 'vitest';
import { chooseDevices } from '../../../src/device/choice.ts';
import type { Inventory, ProbeResult, ProbeVerdict } from '../../../src/device/inventory/candidate.ts';

const works = { isUsable: true, hasFp16: true, isSoftware: false, timing: null, libraries: [] } as const;
const timed = (runMs: number, cpuRunMs: number): ProbeVerdict => ({
  ...works,
  timing: { rows: 1024, runMs, cpuRunMs },
});
const broken = (reason: string): ProbeVerdict => ({ isUsable: false, reason });
const software: ProbeVerdict = { ...works, isSoftware: true };

const device = (id: string, verdict: ProbeVerdict): ProbeResult => {
  const [provider, index] = id.split(':');
  const candidate = { id, provider, index: Number(index), name: `the ${id}`, details: {} };
  return { candidate: candidate as unknown as ProbeResult['candidate'], verdict };
};
const cpu = device('cpu:0', works);
const found = (...results: ProbeResult[]): Inventory => ({ results: [...results, cpu], absences: [] });
const idsOf = (wanted: string[], inventory: Inventory): string[] | string => {
  const choice = chooseDevices(wanted, inventory);
  return 'problem' in choice ? choice.problem : choice.devices.map(({ candidate }) => candidate.id);
};
const reasonsOf = (wanted: string[], inventory: Inventory): string[] => {
  const choice = chooseDevices(wanted, inventory);
  return 'problem' in choice ? [] : choice.refused.map(({ id, reason }) => `${id}: ${reason}`);
};

describe('auto', () => {
  it.each<[string, ProbeResult[], string[]]>([
    ['every usable CUDA device', [device('cuda:0', works), device('cuda:1', works)], ['cuda:0', 'cuda:1']],
    ['CUDA before WebGPU', [device('webgpu:0', works), device('cuda:0', works)], ['cuda:0']],
    ['the CUDA devices that work', [device('cuda:0', broken('x')), device('cuda:1', works)], ['cuda:1']],
    [
      'WebGPU where no CUDA device works',
      [device('cuda:0', broken('x')), device('webgpu:0', timed(1, 2))],
      ['webgpu:0'],
    ],
    ['the CPU where nothing else works', [device('webgpu:0', broken('x'))], ['cpu:0']],
    ['the CPU rather than a software adapter', [device('webgpu:0', software)], ['cpu:0']],
    ['the CPU rather than a slower adapter', [device('webgpu:0', timed(2.1, 2))], ['cpu:0']],
    ['the CPU rather than a slower CUDA device', [device('cuda:0', timed(9, 2))], ['cpu:0']],
    [
      'an adapter of which nobody knows what it is, where it is faster',
      [device('webgpu:0', { ...works, isSoftware: null, timing: { rows: 1024, runMs: 1, cpuRunMs: 2 } })],
      ['webgpu:0'],
    ],
  ])('takes %s', (_, results, ids) => {
    expect(idsOf(['auto'], found(...results))).toEqual(ids);
  });

  it('says of each device that it did not take why, and how to have it all the same', () => {
    const inventory: Inventory = {
      results: [device('webgpu:0', software), cpu],
      absences: [{ provider: 'cuda', reason: 'no NVIDIA GPU was found' }],
    };
    expect(reasonsOf(['auto'], inventory)).toEqual([
      'cuda: no NVIDIA GPU was found',
      expect.stringMatching(/^webgpu:0: the webgpu:0 is software.*--device webgpu:0/),
    ]);
    expect(reasonsOf(['auto'], found(device('cuda:0', broken('libcublas.so.13 not found'))))).toEqual([
      'cuda:0: libcublas.so.13 not found',
    ]);
    expect(reasonsOf(['auto'], found(device('webgpu:0', timed(8, 2))))).toEqual([
      expect.stringContaining('took 8.0 ms where the CPU took 2.0 ms'),
    ]);
  });
});

describe('a device that is named', () => {
  it('is taken although it is software, or slow', () => {
    expect(idsOf(['webgpu'], found(device('webgpu:0', software)))).toEqual(['webgpu:0']);
    expect(idsOf(['webgpu:0'], found(device('webgpu:0', timed(900, 2))))).toEqual(['webgpu:0']);
  });

  it('is taken alone, in the order in which it was named', () => {
    const inventory = found(device('cuda:0', works), device('cuda:1', works), device('cuda:2', works));
    expect(idsOf(['cuda:2', 'cuda:1'], inventory)).toEqual(['cuda:2', 'cuda:1']);
  });

  it('is a problem with its reason where it cannot be used, though another could', () => {
    const inventory = found(device('cuda:0', works), device('cuda:1', broken('its memory is taken')));
    expect(idsOf(['cuda:0', 'cuda:1'], inventory)).toBe('cuda:1 cannot be used: its memory is taken');
  });

  it('is a problem where it does not exist, with those that do', () => {
    const inventory = found(device('cuda:0', works), device('cuda:1', works));
    expect(idsOf(['cuda:7'], inventory)).toBe('cuda:7 does not exist: there is cuda:0, cuda:1');
    expect(idsOf(['cpu:1'], inventory)).toBe('cpu:1 does not exist: there is cpu:0');
  });

  it('is a problem with the reason of its provider where that has no device', () => {
    const inventory: Inventory = {
      results: [cpu],
      absences: [{ provider: 'cuda', reason: 'no NVIDIA GPU was found' }],
    };
    expect(idsOf(['cuda'], inventory)).toBe('cuda cannot be used: no NVIDIA GPU was found');
    expect(idsOf(['cuda:1'], inventory)).toBe('cuda cannot be used: no NVIDIA GPU was found');
  });
});

describe('a provider that is named', () => {
  it('gives its devices that work, and says why not the others', () => {
    const inventory = found(device('cuda:0', broken('too old')), device('cuda:1', works));
    expect(idsOf(['cuda'], inventory)).toEqual(['cuda:1']);
    expect(reasonsOf(['cuda'], inventory)).toEqual(['cuda:0: too old']);
  });

  it('is a problem where none of its devices works', () => {
    expect(idsOf(['cuda'], found(device('cuda:0', broken('too old'))))).toBe('cuda:0 cannot be used: too old');
  });
});
