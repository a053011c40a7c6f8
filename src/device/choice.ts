/** Owns the choice of devices: from what is wanted and what was found to what is used, and why the rest is not. */
import type { ProviderName } from '../executor/protocol.ts';
import type { Absence, Inventory, ProbeResult, UsableVerdict } from './inventory/candidate.ts';
import { parseWanted } from './wanted.ts';

/** A device that works. */
export interface UsableDevice {
  readonly candidate: ProbeResult['candidate'];
  readonly verdict: UsableVerdict;
}

/** A device, or a provider without one, that was considered and not taken. */
export interface Refusal {
  /** Such as webgpu:0, or webgpu where there is none at all. */
  readonly id: string;
  /** One sentence with the fix, without its full stop. */
  readonly reason: string;
}

/** The devices to be used, or why what was asked for cannot be had. */
export type DeviceChoice =
  { readonly devices: readonly UsableDevice[]; readonly refused: readonly Refusal[] } | { readonly problem: string };

/** The order in which `auto` looks; the CPU is always there. */
export const autoOrder: readonly ProviderName[] = ['cuda', 'webgpu', 'cpu'];

/**
 * The devices of one provider, all of them or those that were named.
 * `auto` takes the first provider that has a device worth having; what is named must be usable, but may be slow.
 */
export function chooseDevices(wanted: readonly string[], inventory: Inventory): DeviceChoice {
  const parsed = parseWanted(wanted);
  if ('problem' in parsed) return parsed;
  if (parsed.kind === 'auto') return chooseBest(inventory);
  return chooseNamed(parsed.provider, parsed.indexes, inventory);
}

function chooseBest(inventory: Inventory): DeviceChoice {
  const refused: Refusal[] = [];
  for (const provider of autoOrder) {
    const found = resultsOf(inventory, provider);
    refused.push(...absencesOf(inventory, provider));
    const devices: UsableDevice[] = [];
    for (const { candidate, verdict } of found) {
      const reason = refusalOf({ candidate, verdict });
      if (reason === null && verdict.isUsable) devices.push({ candidate, verdict });
      else if (reason !== null) refused.push({ id: candidate.id, reason });
    }
    if (devices.length > 0) return { devices, refused };
  }
  return { problem: `no device can be used: ${refused.map(({ id, reason }) => `${id}: ${reason}`).join('; ')}` };
}

/** Why `auto` does not take a device, or null where it does. */
function refusalOf({ candidate, verdict }: ProbeResult): string | null {
  if (!verdict.isUsable) return verdict.reason;
  if (verdict.isSoftware === true) return softwareReason(candidate);
  const { timing } = verdict;
  if (timing === null || timing.runMs <= timing.cpuRunMs) return null;
  return (
    `it took ${timing.runMs.toFixed(1)} ms where the CPU took ${timing.cpuRunMs.toFixed(1)} ms: ` +
    `name it to use it all the same (--device ${candidate.id})`
  );
}

/** Why `auto` does not take an adapter that only looks like a GPU. */
export const softwareReason = ({ id, name }: ProbeResult['candidate']): string =>
  `${name} is software that runs on the CPU: name it to use it all the same (--device ${id})`;

function chooseNamed(provider: ProviderName, indexes: readonly number[] | null, inventory: Inventory): DeviceChoice {
  const found = resultsOf(inventory, provider);
  const [absence] = absencesOf(inventory, provider);
  if (found.length === 0)
    return { problem: `${provider} cannot be used: ${absence?.reason ?? 'it has no device here'}` };
  const named = (indexes ?? found.map(({ candidate }) => candidate.index)).map((index) => ({
    id: `${provider}:${index}`,
    result: found.find(({ candidate }) => candidate.index === index),
  }));
  const devices: UsableDevice[] = [];
  const refused: Refusal[] = [];
  for (const { id, result } of named) {
    if (result === undefined) {
      const ids = found.map(({ candidate }) => candidate.id).join(', ');
      return { problem: `${id} does not exist: there is ${ids}` };
    }
    const { candidate, verdict } = result;
    if (verdict.isUsable) devices.push({ candidate, verdict });
    else refused.push({ id, reason: verdict.reason });
  }
  const isEnough = indexes === null ? devices.length > 0 : refused.length === 0;
  if (isEnough) return { devices, refused };
  return { problem: refused.map(({ id, reason }) => `${id} cannot be used: ${reason}`).join('; ') };
}

const resultsOf = (inventory: Inventory, provider: ProviderName): ProbeResult[] =>
  inventory.results.filter(({ candidate }) => candidate.provider === provider);

const absencesOf = (inventory: Inventory, provider: ProviderName): Refusal[] =>
  inventory.absences
    .filter((absence: Absence) => absence.provider === provider)
    .map(({ reason }) => ({ id: provider, reason }));
