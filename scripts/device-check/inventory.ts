/** Owns what `trivec devices` says of the machine, and which providers are checked in which order. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { DevicesReport } from '../../src/cli/devices.ts';
import type { ProbeResult } from '../../src/device/inventory/candidate.ts';
import { driverEnvironment, thisMachine } from '../../src/device/inventory/machine.ts';
import type { ProviderName } from '../../src/executor/protocol.ts';

const mainPath = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const providers: readonly ProviderName[] = ['cuda', 'webgpu', 'cpu'];

/** What a started process sees of the environment: what drivers read, no settings of this program. */
export const deviceEnvironment = driverEnvironment(thisMachine(process.env));

/** Runs the command as a person would. */
export async function readInventory(cacheDir: string, timeoutMs: number): Promise<DevicesReport> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [mainPath, 'devices', '--json', '--cache-dir', cacheDir],
    { env: deviceEnvironment, timeout: Math.ceil(timeoutMs), killSignal: 'SIGKILL' },
  );
  return JSON.parse(stdout) as DevicesReport;
}

/** A provider, and what of it can be used. */
export interface ProviderPlan {
  readonly provider: ProviderName;
  readonly devices: readonly ProbeResult[];
  /** Why there is none; the inventory's own sentence. */
  readonly reason: string | null;
}

const rankOf = ({ devices, provider }: ProviderPlan): number => {
  if (devices.some(({ verdict }) => verdict.isUsable && verdict.isSoftware === true && provider !== 'cpu')) return 2;
  return provider === 'cpu' ? 1 : 0;
};

/** Every provider: real GPUs first, then the CPU; software that plays a GPU is slow and takes what time is left. */
export function planProviders({ devices, absent }: DevicesReport): ProviderPlan[] {
  return providers
    .map((provider): ProviderPlan => {
      const all = devices.filter(({ candidate }) => candidate.provider === provider);
      const usable = all.filter(({ verdict }) => verdict.isUsable);
      const reasons = [
        ...all.flatMap(({ verdict }) => (verdict.isUsable ? [] : [verdict.reason])),
        ...absent.filter((absence) => absence.provider === provider).map(({ reason }) => reason),
      ];
      return { provider, devices: usable, reason: usable.length > 0 ? null : reasons.join('; ') };
    })
    .sort((a, b) => rankOf(a) - rankOf(b));
}
