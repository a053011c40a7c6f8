/** Owns whether a snapshot in the cache, perhaps another tool's, has what a server needs. */
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CatalogEntry } from '../catalog.ts';
import { describeConverted } from '../convert/describe.ts';
import { planPrecision } from '../convert/plan.ts';
import { isWeightStep } from '../convert/steps.ts';
import { findVariants } from '../graph-file.ts';
import type { DeviceAbilities } from '../graph-variant.ts';
import type { Precision } from '../manifest.ts';

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** What keeps a snapshot's settings from being read; null for nothing. */
export async function missingDescription(folder: string): Promise<string | null> {
  for (const name of ['config.json', 'tokenizer.json']) {
    if (!(await isThere(join(folder, name)))) return name;
  }
  return null;
}

/** What is to be served, and where. */
export interface GraphNeed {
  readonly wanted: Precision | 'auto';
  readonly device: DeviceAbilities;
}

/** How a folder serves a precision: whether as it is, or what it lacks to do so. */
export type GraphSupply = { readonly isConverted: boolean } | { readonly missing: string };

/**
 * How the graphs of a folder serve a precision on a device.
 * @throws ConfigurationError where a graph is damaged
 */
export async function graphSupply(
  folder: string,
  { wanted, device }: GraphNeed,
  { graphPath }: CatalogEntry,
): Promise<GraphSupply> {
  const plan = planPrecision(await findVariants(folder, graphPath, device.arch), wanted, device);
  if ('problem' in plan) return { missing: `a graph file: it ${plan.problem}` };
  const path = join(folder, plan.variant.path);
  for (const file of describeConverted(path, []).externalFiles) {
    if (!(await isThere(join(dirname(path), file)))) return { missing: file };
  }
  // Another form of some operators is what the device asks for, whatever the file.
  return { isConverted: plan.steps.some(isWeightStep) };
}
