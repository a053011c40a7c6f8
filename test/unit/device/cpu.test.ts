import { describe, expect, it } from 'vitest';
import { coresWithin, cpuName, nameOfCpu, usableCores } from '../../../src/device/cpu.ts';

const from = (files: Readonly<Record<string, string>>) => (path: string) => files[path] ?? null;
const v2 = '0::/\n';
const v1 = '4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n';

describe('cores that may be used', () => {
  it.each([
    ['a v2 quota', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': '200000 100000\n' }, 2],
    ['a v2 group without limit', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': 'max 100000\n' }, 16],
    ['a v2 fraction above one', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': '350000 100000\n' }, 3],
    ['a v2 fraction below one', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': '50000 100000\n' }, 1],
    ['a v2 quota with another period', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': '100000 50000\n' }, 2],
    ['a v2 quota above the machine', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': '6400000 100000\n' }, 16],
    [
      'the tightest of nested v2 groups',
      {
        '/proc/self/cgroup': '0::/kube/pod/app\n',
        '/sys/fs/cgroup/kube/cpu.max': 'max 100000\n',
        '/sys/fs/cgroup/kube/pod/cpu.max': '300000 100000\n',
        '/sys/fs/cgroup/kube/pod/app/cpu.max': '800000 100000\n',
      },
      3,
    ],
    [
      'a v1 quota seen from inside a container',
      {
        '/proc/self/cgroup': v1,
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '250000\n',
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
      },
      2,
    ],
    [
      'a v1 quota of the group itself',
      {
        '/proc/self/cgroup': v1,
        '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
        '/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us': '400000\n',
        '/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us': '100000\n',
      },
      4,
    ],
    [
      'a v1 group without limit',
      {
        '/proc/self/cgroup': v1,
        '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '-1\n',
        '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
      },
      16,
    ],
    [
      'a v1 quota without its period',
      { '/proc/self/cgroup': v1, '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '200000\n' },
      16,
    ],
    ['no control group files', {}, 16],
    ['files that hold something else', { '/proc/self/cgroup': 'x\n', '/sys/fs/cgroup/cpu.max': 'y z' }, 16],
    ['an unreadable quota', { '/proc/self/cgroup': v2, '/sys/fs/cgroup/cpu.max': 'many 100000' }, 16],
    [
      'a quota on memory only',
      { '/proc/self/cgroup': '4:memory:/a\n', '/sys/fs/cgroup/memory/cpu.cfs_quota_us': '100000\n' },
      16,
    ],
  ] as const)('follow %s', (_name, files, expected) => {
    expect(coresWithin(from(files), 16)).toBe(expected);
  });

  it('on this machine are at least one and whole', () => {
    expect(usableCores()).toBeGreaterThanOrEqual(1);
    expect(Number.isInteger(usableCores())).toBe(true);
  });
});

describe('the name of the CPU', () => {
  it('is the first that says anything, without the padding of the maker', () => {
    expect(nameOfCpu(['', 'unknown', '  Acme   CPU @ 2GHz '])).toBe('Acme CPU @ 2GHz');
  });

  it('is CPU where the machine does not say', () => {
    expect(nameOfCpu(['unknown', ' '])).toBe('CPU');
    expect(nameOfCpu([])).toBe('CPU');
  });

  it('is never empty on this machine', () => {
    expect(cpuName()).not.toBe('');
  });
});
