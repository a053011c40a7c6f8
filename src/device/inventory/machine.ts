/** Owns the view of the machine that the inventory reads: files, variables, platform. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A machine, or a made-up one. */
export interface Machine {
  readonly platform: string;
  readonly architecture: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** The text of a file, or null where it cannot be read. */
  readText(path: string): string | null;
  /** Names in a directory, sorted; none where it cannot be read. */
  list(directory: string): readonly string[];
  exists(path: string): boolean;
}

/** The machine this process runs on, seen with these variables. */
export function thisMachine(variables: Machine['variables']): Machine {
  return {
    platform: process.platform,
    architecture: process.arch,
    variables,
    readText: (path) => orElse(() => readFileSync(path, 'utf8'), null),
    list: (directory) => orElse(() => readdirSync(directory).sort(), []),
    exists: existsSync,
  };
}

function orElse<Value>(read: () => Value, otherwise: Value): Value {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** Whether a program of that name is on the PATH. */
export function isOnPath(machine: Machine, program: string): boolean {
  const names = machine.platform === 'win32' ? [`${program}.exe`] : [program];
  const directories = (machine.variables['PATH'] ?? '').split(delimiter).filter((directory) => directory !== '');
  return directories.some((directory) => names.some((name) => machine.exists(join(directory, name))));
}

/** Variables that drivers and their loaders read; keys and tokens are not among them. */
const driverVariables =
  /^(VK_(?!LOADER_DEBUG$)\w+|MESA_\w+|DRI_PRIME|CUDA_\w+|NVIDIA_\w+|XDG_(CONFIG|DATA)_(HOME|DIRS)|XDG_RUNTIME_DIR|LD_LIBRARY_PATH|HOME|PATH|SystemRoot|LOCALAPPDATA|TEMP|TMP|TMPDIR)$/;

/**
 * What a process that uses a GPU must see of the environment.
 * CUDA counts its devices by speed unless it is told to count them as `nvidia-smi` does.
 */
export function driverEnvironment(machine: Machine): Record<string, string> {
  const kept = Object.entries(machine.variables).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && driverVariables.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), CUDA_DEVICE_ORDER: 'PCI_BUS_ID', ORT_DISABLE_TELEMETRY: '1' };
}
