/** Owns machines that are made up of a few files, for what the inventory decides by reading. */
import type { Machine } from '../../src/device/inventory/machine.ts';

/** A machine with these files and no others; directories follow from the files. */
export function fakeMachine(files: Readonly<Record<string, string>>, more: Partial<Machine> = {}): Machine {
  const paths = Object.keys(files);
  return {
    platform: 'linux',
    architecture: 'x64',
    variables: {},
    readText: (path) => files[path] ?? null,
    list(directory) {
      const below = paths.filter((path) => path.startsWith(`${directory}/`));
      return [...new Set(below.map((path) => path.slice(directory.length + 1).split('/')[0] ?? ''))].sort();
    },
    exists: (path) => path in files || paths.some((file) => file.startsWith(`${path}/`)),
    ...more,
  };
}
