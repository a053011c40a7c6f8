/** Owns starting a server for the check, and what it says of itself. */
import { startServed, type Served } from '../../test/support/served.ts';
import { deviceEnvironment } from './inventory.ts';

/** Bounds that a slow device must not hit: the check has its own. @unit ms */
const patience = ['--deadline-ms', '240000', '--run-timeout-ms', '120000', '--load-timeout-ms', '120000'];

/** How a server is started. */
export interface ServeWish {
  readonly cacheDir: string;
  /** What runs where, and how. */
  readonly flags: readonly string[];
  /** @unit ms */
  readonly startTimeoutMs: number;
}

/**
 * A server that is ready.
 * @throws Error with the server's own reason
 */
export async function serveOn({ cacheDir, flags, startTimeoutMs }: ServeWish): Promise<Served> {
  try {
    return await startServed({
      flags: ['--cache-dir', cacheDir, ...patience, ...flags],
      environment: deviceEnvironment,
      startTimeoutMs,
    });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const reason = /^trivec: (.+)$/mu.exec(text)?.[1];
    throw reason === undefined ? error : new Error(reason, { cause: error });
  }
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
