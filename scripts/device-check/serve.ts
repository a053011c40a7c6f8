/** Owns starting a server for the check, and what it says of itself. */
import { startServed, type Served } from '../../test/support/served.ts';
import { deviceEnvironment } from './inventory.ts';

/** Bounds that a slow device must not hit: the check has its own. @unit ms */
const patience = ['--deadline-ms', '240000', '--run-timeout-ms', '120000', '--load-timeout-ms', '120000'];

/** How a server is started. */
export interface ServeWish {
  /** In the grammar of `--device`. */
  readonly device: string;
  readonly cacheDir: string;
  readonly flags: readonly string[];
  /** @unit ms */
  readonly startTimeoutMs: number;
}

/** A server that is ready on that device. */
export function serveOn({ device, cacheDir, flags, startTimeoutMs }: ServeWish): Promise<Served> {
  return startServed({
    flags: ['--device', device, '--cache-dir', cacheDir, ...patience, ...flags],
    environment: deviceEnvironment,
    startTimeoutMs,
  });
}

/** A device in `info`. */
export interface ServedDevice {
  readonly id: string;
  readonly executionProvider: string;
  readonly name: string;
  readonly precision: string;
  readonly state: string;
}

/** The devices that `info` names. */
export async function servedDevices(served: Served): Promise<readonly ServedDevice[]> {
  return (await served.call<{ 'x-trivec': { devices: ServedDevice[] } }>('info'))['x-trivec'].devices;
}
