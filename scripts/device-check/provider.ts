/** Owns the rows of one provider, in their order: everything that needs a server on it. */
import type { OpenedGroup } from '../../src/engine/group.ts';
import type { ProviderName } from '../../src/executor/protocol.ts';
import type { Served } from '../../test/support/served.ts';
import { openModels, type BareEngine } from './bare-engine.ts';
import type { TimeBudget } from './budget.ts';
import { compareWithBare, provePlacement } from './check-bare.ts';
import { checkInfo, checkMemory, checkRecovery, checkSpeed } from './check-server.ts';
import { checkValues, precisionIn, type ReferenceValues } from './check-values.ts';
import type { ProviderPlan } from './inventory.ts';
import { offerFor, type Lane, type Offer } from './offer.ts';
import { CannotRun, type RowTaker } from './rows.ts';
import { serveOn } from './serve.ts';
import { textsOfTokens, type SizedTexts } from './texts.ts';
import type { ValueKind } from './values.ts';

/** What every provider is checked with. */
export interface CheckParts {
  readonly taker: RowTaker;
  readonly budget: TimeBudget;
  readonly cacheDir: string;
  readonly kinds: readonly ValueKind[];
  readonly reference: ReferenceValues;
}

/** A server, and what is known of it. */
interface Checked {
  readonly plan: ProviderPlan;
  readonly offer: Offer;
  readonly served: Served;
  /** What it took to be ready, which is about what an executor takes to come back. @unit ms */
  readonly startMs: number;
}

const second = 1000;
/** Lengths of the texts whose speed is measured. @unit tokens */
const lengths = [16, 64, 250];
/** Texts of each length. */
const textCount = 512;
/** Length of the texts that are also given to the bare engine, and to a server whose executors are killed. @unit tokens */
const plainTokens = 64;
/** A slower device would spend minutes on the random requests. @unit tokens per second */
const leastRateForMemory = 200;
/** A pass through the texts on a slow device should not take longer than this. @unit s */
const passSeconds = 1.5;

/** Makes the rows of a provider. */
export async function checkProvider(plan: ProviderPlan, parts: CheckParts): Promise<void> {
  const { taker, cacheDir, budget } = parts;
  const { provider, reason } = plan;
  if (reason !== null) {
    taker.skip(provider, 'server', reason);
    return;
  }
  const offer = offerFor(plan);
  const beforeMs = budget.remainingMs();
  const sinceMs = () => beforeMs - budget.remainingMs();
  const startBounds = { leastMs: 10 * second, mostMs: offer.maxStartMs };
  const served = await taker.take(provider, 'server', startBounds, async (part) => {
    const made = await startWithin(offer, provider, cacheDir, part);
    return { isGood: true, value: `${(sinceMs() / second).toFixed(1)} s`, detail: `until ready${offer.note}`, made };
  });
  if (served === null) return;
  try {
    await checkServed({ plan, offer, served, startMs: sinceMs() }, parts);
  } finally {
    await served.end();
  }
}

async function startWithin(offer: Offer, provider: ProviderName, cacheDir: string, part: TimeBudget): Promise<Served> {
  const startTimeoutMs = Math.floor(part.remainingMs());
  try {
    return await serveOn({ cacheDir, flags: offer.flags(provider), startTimeoutMs });
  } catch (error) {
    if (!offer.mayBeTooSlow || part.remainingMs() > second) throw error;
    throw new CannotRun(`not ready within ${(startTimeoutMs / second).toFixed(0)} s${offer.note}`);
  }
}

async function checkServed(checked: Checked, parts: CheckParts): Promise<void> {
  const { plan, offer, served, startMs } = checked;
  const { taker, cacheDir, kinds, reference } = parts;
  const { provider } = plan;
  const label = await taker.take(provider, 'info', { leastMs: second, mostMs: 10 * second }, () =>
    checkInfo(served, provider),
  );
  const opened = await openModels(plan, offer.uses, cacheDir, label ?? '');
  const engine = await taker.take(
    provider,
    'placement, proofs',
    { leastMs: startMs / 2, mostMs: 20 * second + startMs },
    () => provePlacement(opened),
  );
  try {
    for (const kind of kinds.filter(({ name }) => offer.kinds.has(name))) {
      await taker.take(provider, `values: ${kind.name}`, { leastMs: 5 * second, mostMs: 25 * second }, (part) =>
        checkValues(served, kind, precisionIn(label ?? ''), reference, part),
      );
    }
    await checkLoads(checked, opened, engine, parts);
  } finally {
    engine?.end();
  }
}

async function sizedTexts(opened: OpenedGroup, lane: Lane, tokens: number, count: number): Promise<SizedTexts> {
  const tokenizer = opened.tokenizers.get(lane.model);
  if (tokenizer === undefined) throw new Error(`${lane.model} has no tokenizer`);
  return textsOfTokens(tokenizer, tokens, count);
}

async function checkLoads(
  { plan: { provider }, offer, served, startMs }: Checked,
  opened: OpenedGroup,
  engine: BareEngine | null,
  { taker }: CheckParts,
): Promise<void> {
  let bestRate = 0;
  for (const lane of offer.lanes) {
    let fastest = 0;
    for (const tokens of lengths) {
      const bounds = { leastMs: 8 * second, mostMs: 20 * second };
      const rate = await taker.take(provider, `speed: ${lane.model}, ${tokens} tokens`, bounds, async (part) =>
        checkSpeed(served, lane, await sizedTexts(opened, lane, tokens, textCount), part),
      );
      fastest = Math.max(fastest, rate ?? 0);
    }
    bestRate = Math.max(bestRate, fastest);
    if (engine === null) taker.skip(provider, `server / bare: ${lane.model}`, 'the bare engine did not prove itself');
    else {
      const count = Math.max(1, Math.min(textCount, Math.floor((fastest * passSeconds) / plainTokens)));
      const bounds = { leastMs: 10 * second, mostMs: 25 * second };
      await taker.take(provider, `server / bare: ${lane.model}`, bounds, async (part) =>
        compareWithBare({ served, engine, lane, sized: await sizedTexts(opened, lane, plainTokens, count) }, part),
      );
    }
  }
  // Its executors would hold cores and memory of the device beside the server's.
  engine?.end();
  if (bestRate < leastRateForMemory) {
    taker.skip(provider, 'memory', `too slow for random requests: ${bestRate.toFixed(0)} tokens/s`);
  } else {
    const bounds = { leastMs: 5 * second, mostMs: 40 * second };
    await taker.take(provider, 'memory', bounds, (part) => checkMemory(served, provider, offer, part));
  }
  const [lane] = offer.lanes;
  if (lane === undefined) return;
  const killBounds = { leastMs: 10 * second + startMs, mostMs: 30 * second + 3 * startMs };
  await taker.take(provider, 'kill -9 under load', killBounds, async (part) =>
    checkRecovery(served, lane, await sizedTexts(opened, lane, plainTokens, textCount), part),
  );
}
