/** Owns what the CPU is called, and how many of its cores this process may use. */
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';

/** The text of a file, or null where it cannot be read. */
export type ReadText = (path: string) => string | null;

/** The CPU as its maker calls it. */
export function cpuName(): string {
  return nameOfCpu(cpus().map((cpu) => cpu.model));
}

/** The first model name that says anything. */
export function nameOfCpu(models: readonly string[]): string {
  const names = models.map((model) => model.trim().replaceAll(/\s+/g, ' '));
  return names.find((name) => name !== '' && name !== 'unknown') ?? 'CPU';
}

/** Cores that this process may use: what the machine offers, or less where a control group says so. */
export function usableCores(): number {
  return coresWithin(readText, availableParallelism());
}

/**
 * The least of `available` and every quota of control group v2 or v1 above the process, rounded down to at least 1.
 * @source the kernel's documentation of `cpu.max`, `cpu.cfs_quota_us` and `cpu.cfs_period_us`
 */
export function coresWithin(read: ReadText, available: number): number {
  const groups = (read('/proc/self/cgroup') ?? '').split('\n').map(parseGroup);
  const quotas = groups.flatMap((group) => (group === null ? [] : quotasOf(group, read)));
  return Math.max(1, Math.floor(Math.min(available, ...quotas)));
}

interface ControlGroup {
  readonly path: string;
  /** Where the hierarchy may be mounted; the first that exists counts for nothing special, all are asked. */
  readonly mounts: readonly string[];
  readonly quotaIn: (directory: string, read: ReadText) => number | null;
}

/** A line `id:controllers:path`; v2 has no controllers, v1 counts where `cpu` is among them. */
function parseGroup(line: string): ControlGroup | null {
  const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
  if (controllers === undefined || path === undefined) return null;
  if (controllers === '') {
    return { path, mounts: ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'], quotaIn: quotaOfVersion2 };
  }
  if (!controllers.split(',').includes('cpu')) return null;
  return { path, mounts: [`/sys/fs/cgroup/${controllers}`, '/sys/fs/cgroup/cpu'], quotaIn: quotaOfVersion1 };
}

/** Quotas from the group up to its mount: each of them binds. In a container the path may only exist outside. */
function quotasOf(group: ControlGroup, read: ReadText): number[] {
  const parts = group.path.split('/').filter((part) => part !== '');
  const directories = parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
  return group.mounts
    .flatMap((mount) => ['', ...directories].map((directory) => group.quotaIn(`${mount}${directory}`, read)))
    .filter((quota) => quota !== null);
}

function quotaOfVersion2(directory: string, read: ReadText): number | null {
  const [quota, period] = (read(`${directory}/cpu.max`) ?? '').trim().split(/\s+/);
  return coresOf(quota, period ?? '100000');
}

function quotaOfVersion1(directory: string, read: ReadText): number | null {
  return coresOf(read(`${directory}/cpu.cfs_quota_us`)?.trim(), read(`${directory}/cpu.cfs_period_us`)?.trim());
}

/** Quota over period in cores; null where there is no limit (`max`, -1) or nothing that can be read. */
function coresOf(quota: string | undefined, period: string | undefined): number | null {
  const cores = Number(quota) / Number(period);
  return Number.isFinite(cores) && cores > 0 ? cores : null;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
