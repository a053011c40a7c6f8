import { describe, expect, it } from 'vitest';
import { cpuResult, vectorFeaturesIn } from '../../../../src/device/inventory/cpu.ts';
import { memoryLimitBytes } from '../../../../src/device/inventory/memory-limit.ts';
import { fakeMachine } from '../../../support/fake-machine.ts';

const gigabyte = 2 ** 30;

describe('vector features', () => {
  it.each([
    [
      'flags\t\t: fpu sse2 avx2 avx512f avx_vnni amx_int8\nflags\t\t: avx\n',
      ['avx2', 'avx512f', 'avx_vnni', 'amx_int8'],
    ],
    ['Features\t: fp asimd i8mm sve\n', ['asimd', 'i8mm', 'sve']],
    ['processor : 0\n', []],
    ['', []],
  ])('of %j are %j', (text, features) => {
    expect(vectorFeaturesIn(text)).toEqual(features);
  });
});

describe('the memory limit', () => {
  it.each<[string, Record<string, string>, number | null]>([
    ['is none without control groups', {}, null],
    ['is none where the group says max', { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': 'max\n' }, null],
    [
      'is the least of the group and those above it',
      {
        '/proc/self/cgroup': '0::/a/b\n',
        '/sys/fs/cgroup/a/memory.max': `${gigabyte}\n`,
        '/sys/fs/cgroup/a/b/memory.max': `${2 * gigabyte}\n`,
      },
      gigabyte,
    ],
    [
      'is the one of the mount where the path exists outside the container only',
      { '/proc/self/cgroup': '0::/docker/x\n', '/sys/fs/cgroup/memory.max': `${gigabyte}` },
      gigabyte,
    ],
    [
      'is read of version 1',
      { '/proc/self/cgroup': '4:memory:/a\n1:cpu:/\n', '/sys/fs/cgroup/memory/a/memory.limit_in_bytes': `${gigabyte}` },
      gigabyte,
    ],
    [
      'is none where version 1 has its huge number',
      { '/proc/self/cgroup': '4:memory:/\n', '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712' },
      null,
    ],
  ])('%s', (_, files, limit) => {
    expect(memoryLimitBytes(fakeMachine(files))).toBe(limit);
  });
});

describe('the CPU', () => {
  it('is always usable, with at least one core', () => {
    const { candidate, verdict } = cpuResult(fakeMachine({}));
    expect(candidate).toMatchObject({ id: 'cpu:0', provider: 'cpu', details: { architecture: 'x64' } });
    expect(candidate.provider === 'cpu' && candidate.details.cores).toBeGreaterThanOrEqual(1);
    expect(verdict).toMatchObject({ isUsable: true, isSoftware: false, timing: null });
  });
});
