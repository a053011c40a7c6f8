import { describe, expect, it } from 'vitest';
import { reportDevices, showDevices } from '../../../src/cli/devices.ts';
import type { Inventory, ProbeResult } from '../../../src/device/inventory/candidate.ts';
import { cudaCandidate } from '../../../src/device/inventory/nvidia.ts';

const usable = { isUsable: true, hasFp16: true, isSoftware: false, timing: null, libraries: [] } as const;
const cpu: ProbeResult = {
  candidate: {
    id: 'cpu:0',
    provider: 'cpu',
    index: 0,
    name: 'Some CPU',
    details: { cores: 4, architecture: 'x64', vectorFeatures: ['avx2'], memoryBytes: 8e9, memoryLimitBytes: 2e9 },
  },
  verdict: usable,
};
const webgpu: ProbeResult = {
  candidate: {
    id: 'webgpu:0',
    provider: 'webgpu',
    index: 0,
    name: 'llvmpipe',
    details: { vendor: 'Mesa', isSoftware: true, drivers: [], renderNodes: [], limits: null },
  },
  verdict: { ...usable, hasFp16: false, isSoftware: true, timing: { rows: 16, runMs: 300, cpuRunMs: 1 } },
};
const gpu = { uuid: null, busId: null, memoryBytes: 80e9, driverVersion: '580.1', computeCapability: '9.0' };
const fast: ProbeResult = {
  candidate: cudaCandidate({ name: 'Fast GPU', ...gpu }, 0),
  verdict: { ...usable, timing: { rows: 1024, runMs: 2, cpuRunMs: 30 } },
};
const lame: ProbeResult = {
  candidate: cudaCandidate({ name: 'Lame GPU', ...gpu, memoryBytes: null, driverVersion: null }, 1),
  verdict: { isUsable: false, reason: 'libcublas.so.13 not found: run `trivec devices install-cuda`' },
};
const linesOf = (inventory: Inventory): string[] => showDevices(reportDevices(inventory)).split('\n');

describe('the table of devices', () => {
  it('shows every device with what it is, what it showed and whether auto takes it', () => {
    const lines = linesOf({ results: [fast, lame, webgpu, cpu], absences: [] });
    expect(lines.slice(0, 5).map((line) => line.split(/ {2,}/))).toEqual([
      ['DEVICE', 'WORKS', 'AUTO', 'FP16', 'SPEED', 'NAME', 'DETAILS'],
      [
        'cuda:0',
        'yes',
        'yes',
        'yes',
        '15.0x the CPU',
        'Fast GPU',
        '80.0 GB memory, driver 580.1, compute capability 9.0',
      ],
      ['cuda:1', 'no', 'no', '-', '-', 'Lame GPU', 'memory unknown, driver unknown, compute capability 9.0'],
      ['webgpu:0', 'yes', 'no', 'no', '1/300 of the CPU', 'llvmpipe', 'Mesa, software'],
      ['cpu:0', 'yes', 'no', 'yes', '-', 'Some CPU', '4 cores, 2.0 GB memory, avx2'],
    ]);
  });

  it('says why of everything that auto does not take', () => {
    const lines = linesOf({ results: [fast, lame, webgpu, cpu], absences: [] });
    expect(lines.slice(6)).toEqual([
      'cuda:1: libcublas.so.13 not found: run `trivec devices install-cuda`.',
      'webgpu:0: cuda:0 comes first.',
      'cpu:0: cuda:0 comes first.',
    ]);
    expect(
      linesOf({ results: [webgpu, cpu], absences: [{ provider: 'cuda', reason: 'none was found' }] }).slice(4),
    ).toEqual([expect.stringMatching(/^webgpu:0: llvmpipe is software/), 'cuda: none was found.']);
  });

  it('ends with the table where there is nothing to say', () => {
    expect(linesOf({ results: [cpu], absences: [] })).toHaveLength(2);
  });
});
