/** Owns what the Vulkan loader would find: its driver manifests and the libraries they name. */
import { delimiter, dirname, join } from 'node:path';
import type { Machine } from './machine.ts';

/** One driver that a manifest names. */
export interface VulkanDriver {
  readonly manifestPath: string;
  /** As the loader would open it: a path, or a bare name that the system looks up. */
  readonly library: string;
}

/** What the loader would find. */
export interface VulkanDrivers {
  readonly drivers: readonly VulkanDriver[];
  /** Why there is none; null where there are some. */
  readonly reason: string | null;
}

/** The variable that replaces the search, the newer name first, as the loader has it. */
const overrides = ['VK_DRIVER_FILES', 'VK_ICD_FILENAMES'] as const;
const install =
  'install the one of the GPU (on Debian mesa-vulkan-drivers; of NVIDIA it comes with the driver, in a container with ' +
  'NVIDIA_DRIVER_CAPABILITIES=all)';

/**
 * The Vulkan drivers that may be loaded.
 * @source the Vulkan loader's LoaderDriverInterface document, "Driver Discovery"
 */
export function vulkanDrivers(machine: Machine): VulkanDrivers {
  const override = overrides.find((name) => (machine.variables[name] ?? '') !== '');
  const manifests = override === undefined ? searched(machine) : named(machine, override);
  const more = named(machine, 'VK_ADD_DRIVER_FILES');
  const drivers = [...more, ...manifests].flatMap((manifestPath) => driverIn(machine, manifestPath));
  if (drivers.length > 0) return { drivers, reason: null };
  const reason =
    override === undefined
      ? `no Vulkan driver is installed: ${install}`
      : `${override} names no driver manifest that can be read: unset it, or correct it`;
  return { drivers, reason };
}

/** The manifests that a variable lists; a directory stands for those in it. */
function named(machine: Machine, variable: string): string[] {
  const paths = (machine.variables[variable] ?? '').split(delimiter).filter((path) => path !== '');
  return paths.flatMap((path) => (path.endsWith('.json') ? [path] : manifestsIn(machine, path)));
}

function searched(machine: Machine): string[] {
  const home = machine.variables['HOME'] ?? '/';
  const read = (name: string, otherwise: string): string => machine.variables[name] ?? otherwise;
  const roots = [
    read('XDG_CONFIG_HOME', join(home, '.config')),
    ...read('XDG_CONFIG_DIRS', '/etc/xdg').split(delimiter),
    '/etc',
    read('XDG_DATA_HOME', join(home, '.local/share')),
    ...read('XDG_DATA_DIRS', '/usr/local/share:/usr/share').split(delimiter),
  ].filter((root) => root !== '');
  return [...new Set(roots)].flatMap((root) => manifestsIn(machine, join(root, 'vulkan/icd.d')));
}

const manifestsIn = (machine: Machine, directory: string): string[] =>
  machine
    .list(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => join(directory, name));

function driverIn(machine: Machine, manifestPath: string): VulkanDriver[] {
  const path = libraryPathIn(machine.readText(manifestPath));
  if (path === null) return [];
  const isRelative = path.includes('/') && !path.startsWith('/');
  const library = isRelative ? join(dirname(manifestPath), path) : path;
  if (library.includes('/') && !machine.exists(library)) return [];
  return [{ manifestPath, library }];
}

function libraryPathIn(text: string | null): string | null {
  try {
    const manifest = JSON.parse(text ?? '') as { ICD?: { library_path?: unknown } } | null;
    const path = manifest?.ICD?.library_path;
    return typeof path === 'string' && path !== '' ? path : null;
  } catch {
    return null;
  }
}
