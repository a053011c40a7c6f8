/** Owns whether a group of models may go to a GPU: tried there, with each precision, and against the CPU. */
import type { Clock } from '../clock.ts';
import type { DeviceLimits } from '../device/limits.ts';
import { tryDevice, type TrialOutcome } from '../device/trial.ts';
import type { FoundDevice } from '../device/inventory/find.ts';
import { everyHead } from '../device/warm-up.ts';
import type { RunBatch, RunItem } from '../executor/protocol.ts';
import { thisCpu } from '../model/graph-variant.ts';
import { abilitiesOf, openGroup, providerOf, type OpenedGroup, type OpeningParts } from './group.ts';
import type { DeviceGroup } from './groups.ts';

/** What trying needs besides what opening needs. */
export interface TryingParts extends OpeningParts {
  readonly clock: Clock;
  readonly limits: DeviceLimits;
  /** The CPU, to compare with; null where the device was asked for by name, whatever its speed. */
  readonly cpu: FoundDevice | null;
  /** Cores that the CPU would serve with. */
  readonly cores: number;
}

/** The group, open, or why its devices cannot have it. */
export type GroupTrial =
  { readonly isTaken: true; readonly opened: OpenedGroup } | { readonly isTaken: false; readonly reason: string };

/** Texts and tokens of the run that is timed: an ordinary batch of passages. */
const timedTexts = 8;
const timedTokens = 48;

/** A run of ordinary size of a group's first model, made of the tokens of its own proof. */
function timedBatchOf({ proofRuns, loads }: OpenedGroup): RunBatch {
  const [proof] = proofRuns;
  if (proof === undefined) throw new Error('every model has a proof');
  const { batch } = proof;
  const load = loads.find(({ modelId }) => modelId === batch.modelId);
  const tokens = Math.min(timedTokens, load?.maxTokens ?? timedTokens, load?.runPolicy.fixedTokens ?? Infinity);
  const own = batch.items[0]?.ids ?? new Int32Array();
  const ids = Int32Array.from({ length: tokens }, (_, position) => own[position % own.length] ?? 0);
  const item: RunItem = { ids, typeIds: null, keptRows: null };
  return { ...batch, items: Array.from({ length: timedTexts }, () => item) };
}

function tryOn(opened: OpenedGroup, device: FoundDevice, threads: number, parts: TryingParts): Promise<TrialOutcome> {
  const { loads: models, proofRuns, launch } = opened;
  const { clock, limits } = parts;
  const provider = { name: device.candidate.provider, deviceIndex: device.candidate.index };
  const timedHeads = () => everyHead(models);
  const timedBatch = timedBatchOf(opened);
  return tryDevice({ models, proofRuns, launch, clock, limits, threads, provider, timedHeads, timedBatch });
}

/** How long the CPU takes for the same; null where it cannot run them. */
async function cpuRunMs(group: DeviceGroup, cpu: FoundDevice, parts: TryingParts): Promise<number | null> {
  const opened = await openGroup({ ...group, devices: [cpu] }, thisCpu, parts);
  const outcome = await tryOn(opened, cpu, parts.cores, parts);
  return outcome.isProved ? outcome.runMs : null;
}

/**
 * The group as it can be served on its devices: in the first precision that proves itself on all of them.
 * The CPU is taken without a trial, since nothing comes after it; its executors prove themselves at their start.
 * @throws ConfigurationError where the models cannot be served anywhere
 */
export async function tryGroup(group: DeviceGroup, parts: TryingParts): Promise<GroupTrial> {
  const provider = providerOf(group.devices);
  if (provider === 'cpu') return { isTaken: true, opened: await openGroup(group, thisCpu, parts) };
  if (parts.settings.precision === 'int8')
    return { isTaken: false, reason: `${provider} does not run int8 weights: use --device cpu or another --precision` };
  const choices = abilitiesOf(group, parts.settings.precision);
  const [only] = choices;
  // Where there is nothing to choose, the start itself is the trial: a failure ends it with the same reason.
  if (parts.cpu === null && choices.length === 1 && only !== undefined) {
    return { isTaken: true, opened: await openGroup(group, only, parts) };
  }
  const reasons: string[] = [];
  for (const abilities of choices) {
    const opened = await openGroup(group, abilities, parts);
    const outcomes: TrialOutcome[] = [];
    for (const device of group.devices) outcomes.push(await tryOn(opened, device, 1, parts));
    const failure = outcomes.find((outcome) => !outcome.isProved);
    if (failure?.isProved === false) {
      const reason = `${opened.precision}: ${failure.reason}`;
      reasons.push(reason);
      parts.log.warn(`${provider} is not taken in ${reason}`);
      continue;
    }
    const slowest = Math.max(...outcomes.map((outcome) => (outcome.isProved ? outcome.runMs : Infinity)));
    const cpuMs = parts.cpu === null ? null : await cpuRunMs(group, parts.cpu, parts);
    if (cpuMs === null || slowest <= cpuMs) return { isTaken: true, opened };
    const times = `${slowest.toFixed(1)} ms where the CPU takes ${cpuMs.toFixed(1)} ms`;
    return { isTaken: false, reason: `with the models that are served it takes ${times}` };
  }
  return { isTaken: false, reason: reasons.join('; ') };
}
