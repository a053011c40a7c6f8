/** Owns which models run on the same devices: a pure function of what was found for each use. */
import type { FoundDevice } from '../device/inventory/find.ts';
import type { ModelSettings } from '../model/registry.ts';
import type { ModelUse } from '../model/role.ts';

/** Uses whose models run on the same devices. */
export interface DeviceGroup {
  readonly devices: readonly FoundDevice[];
  readonly uses: readonly ModelUse[];
}

const idsOf = (devices: readonly FoundDevice[]): string => devices.map(({ candidate }) => candidate.id).join(',');

/** The groups of these uses, in their order. */
export function groupUses(
  uses: readonly ModelUse[],
  devices: Readonly<Record<ModelUse, readonly FoundDevice[]>>,
): DeviceGroup[] {
  const groups = new Map<string, { devices: readonly FoundDevice[]; uses: ModelUse[] }>();
  for (const use of uses) {
    const key = idsOf(devices[use]);
    const group = groups.get(key) ?? { devices: devices[use], uses: [] };
    group.uses.push(use);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** The settings with the models of these uses only. */
export function settingsFor(settings: ModelSettings, uses: readonly ModelUse[]): ModelSettings {
  const keep = (use: ModelUse, names: readonly string[]) => (uses.includes(use) ? names : []);
  return {
    ...settings,
    embedModel: keep('embed', settings.embedModel),
    sparseModel: keep('sparseEmbed', settings.sparseModel),
    multiModel: keep('multiVector', settings.multiModel),
    rerankModel: keep('rerank', settings.rerankModel),
  };
}
