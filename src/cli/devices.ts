/** Owns the command `devices`: what this machine can run models on, tried for real. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { environment } from '../config/environment.ts';
import { cudaLibraryEnvironment } from '../cuda/library-environment.ts';
import { chooseDevices } from '../device/choice.ts';
import type { DeviceChoice } from '../device/choice.ts';
import type { DeviceCandidate, Inventory, ProbeResult } from '../device/inventory/candidate.ts';
import { takeInventory } from '../device/inventory/find.ts';
import { thisMachine } from '../device/inventory/machine.ts';
import { showBytes } from '../model/hub/progress.ts';
import { settingsOf, type Flags } from './command-settings.ts';
import { processEntries } from './entries.ts';
import { showTable } from './model-tables.ts';

/** One device as the command prints it. */
interface DeviceRow extends ProbeResult {
  /** Whether `--device auto` takes it, and why not. */
  readonly auto: { readonly isUsed: boolean; readonly reason: string | null };
}

/** Everything that the command says. */
export interface DevicesReport {
  readonly devices: readonly DeviceRow[];
  /** Providers without a device here. */
  readonly absent: Inventory['absences'];
}

/** What was found, with what `--device auto` makes of it. */
export function reportDevices(inventory: Inventory): DevicesReport {
  const choice = chooseDevices(['auto'], inventory);
  const devices = inventory.results.map((result) => ({ ...result, auto: autoOf(result, choice) }));
  return { devices, absent: inventory.absences };
}

function autoOf({ candidate: { id } }: ProbeResult, choice: DeviceChoice): DeviceRow['auto'] {
  if ('problem' in choice) return { isUsed: false, reason: choice.problem };
  if (choice.devices.some(({ candidate }) => candidate.id === id)) return { isUsed: true, reason: null };
  const refusal = choice.refused.find((refused) => refused.id === id);
  const taken = choice.devices.map(({ candidate }) => candidate.id).join(', ');
  return { isUsed: false, reason: refusal?.reason ?? `${taken} comes first` };
}

function detailsOf(candidate: DeviceCandidate): string {
  switch (candidate.provider) {
    case 'cpu': {
      const { cores, vectorFeatures, memoryBytes, memoryLimitBytes } = candidate.details;
      const memory = `${showBytes(Math.min(memoryBytes, memoryLimitBytes ?? Infinity))} memory`;
      return [`${cores} cores`, memory, vectorFeatures.join(' ')].filter((part) => part !== '').join(', ');
    }
    case 'webgpu': {
      const { vendor, isSoftware } = candidate.details;
      const kind = isSoftware === null ? 'hardware or software unknown' : isSoftware ? 'software' : 'hardware';
      return `${vendor ?? 'vendor unknown'}, ${kind}`;
    }
    case 'cuda': {
      const { memoryBytes, driverVersion, computeCapability } = candidate.details;
      const memory = memoryBytes === null ? 'memory unknown' : `${showBytes(memoryBytes)} memory`;
      return `${memory}, driver ${driverVersion ?? 'unknown'}, compute capability ${computeCapability ?? 'unknown'}`;
    }
  }
}

/** Tells how much faster or slower than the CPU provider a device ran the same small graph. */
function speedOf({ verdict }: ProbeResult): string {
  if (!verdict.isUsable || verdict.timing === null) return '-';
  const { runMs, cpuRunMs } = verdict.timing;
  return runMs > cpuRunMs
    ? `1/${(runMs / cpuRunMs).toFixed(0)} of the CPU`
    : `${(cpuRunMs / runMs).toFixed(1)}x the CPU`;
}

function rowOf(row: DeviceRow): string[] {
  const { candidate, verdict, auto } = row;
  return [
    candidate.id,
    verdict.isUsable ? 'yes' : 'no',
    auto.isUsed ? 'yes' : 'no',
    verdict.isUsable ? (verdict.hasFp16 ? 'yes' : 'no') : '-',
    speedOf(row),
    candidate.name,
    detailsOf(candidate),
  ];
}

/** The report as a table for a person, with a sentence for whatever `auto` does not take. */
export function showDevices({ devices, absent }: DevicesReport): string {
  const table = showTable([['DEVICE', 'WORKS', 'AUTO', 'FP16', 'SPEED', 'NAME', 'DETAILS'], ...devices.map(rowOf)]);
  const reasons = [
    ...devices.flatMap(({ candidate, auto }) => (auto.reason === null ? [] : [`${candidate.id}: ${auto.reason}.`])),
    ...absent.map(({ provider, reason }) => `${provider}: ${reason}.`),
  ];
  return [table, ...(reasons.length === 0 ? [] : ['', ...reasons])].join('\n');
}

async function run(flags: Flags): Promise<void> {
  const { cacheDir } = settingsOf(flags, ['cacheDir']);
  const libraries = cudaLibraryEnvironment(resolve(cacheDir), environment['LD_LIBRARY_PATH']);
  const inventory = await takeInventory({
    machine: thisMachine(environment),
    probeEntry: processEntries.probe,
    environmentFor: ({ provider }) => (provider === 'cuda' ? (libraries?.env ?? {}) : {}),
  });
  const report = reportDevices(inventory);
  process.stdout.write(`${flags['json'] === true ? JSON.stringify(report, null, 2) : showDevices(report)}\n`);
}

/** Adds `devices`, to which others add what they do about devices. */
export function addDevicesCommand(program: Command): void {
  program
    .command('devices')
    .description('list what this machine can run models on; every GPU is tried in a process of its own')
    .option('--config <file>', 'JSON file with settings, as for serve')
    .option('--cache-dir <text>', 'directory that `devices install-cuda` was given')
    .option('--json', 'print JSON')
    .action(run);
}
