/** Owns how much memory the control group of this process allows. */
import type { Machine } from './machine.ts';

/** From this on a figure of version 1 means that there is no limit: no machine has so much. @unit bytes */
const unlimitedBytes = 2 ** 60;

/**
 * The least limit of the control group and of those above it, of version 2 or 1; null where none is set.
 * @unit bytes
 * @source the kernel's documentation of `memory.max` and `memory.limit_in_bytes`
 */
export function memoryLimitBytes({ readText }: Pick<Machine, 'readText'>): number | null {
  const limits = (readText('/proc/self/cgroup') ?? '').split('\n').flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) return [];
    if (controllers === '') {
      return limitsOf(path, ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'], 'memory.max', readText);
    }
    if (!controllers.split(',').includes('memory')) return [];
    return limitsOf(path, ['/sys/fs/cgroup/memory'], 'memory.limit_in_bytes', readText);
  });
  return limits.length === 0 ? null : Math.min(...limits);
}

/** In a container the path may only exist outside; then the mount itself is the group. */
function limitsOf(path: string, mounts: readonly string[], file: string, readText: Machine['readText']): number[] {
  const parts = path.split('/').filter((part) => part !== '');
  const directories = ['', ...parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)];
  return mounts
    .flatMap((mount) => directories.map((directory) => (readText(`${mount}${directory}/${file}`) ?? '').trim()))
    .filter((text) => /^\d+$/.test(text))
    .map(Number)
    .filter((bytes) => bytes < unlimitedBytes);
}
