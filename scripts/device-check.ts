/** Owns the command that checks every device of this machine within some minutes: `npm run device-check -- [--json FILE]`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { DevicesReport } from '../src/cli/devices.ts';
import { cudaWheels } from '../src/cuda/wheels.ts';
import { cpuName, usableCores } from '../src/device/cpu.ts';
import { defaultSettings } from './device-check/bare-engine.ts';
import { createBudget, type TimeBudget } from './device-check/budget.ts';
import { collectValues, type ReferenceValues } from './device-check/check-values.ts';
import { planProviders, readInventory } from './device-check/inventory.ts';
import { packSet } from './device-check/pack.ts';
import { checkProvider } from './device-check/provider.ts';
import { createRowTaker, hasFailure, showRows, type RowTaker } from './device-check/rows.ts';
import { serveOn } from './device-check/serve.ts';
import { unpackSet } from './device-check/unpack.ts';
import { valueKinds, type ValueKind } from './device-check/values.ts';

const second = 1000;
/** Ends of servers, and the start of this process, come on top of it. */
const defaultSeconds = '440';
/** Largest piece that travels. @unit bytes */
const maxPieceBytes = 60_000_000;

const { values: flags } = parseArgs({
  options: {
    json: { type: 'string', default: '.cache/device-check.json' },
    /** Where CUDA's libraries are, and derived files go. */
    'cache-dir': { type: 'string', default: defaultSettings.cacheDir },
    /** Providers to check, separated by commas; unset, all. */
    only: { type: 'string' },
    /** What all rows together may take. */
    seconds: { type: 'string', default: defaultSeconds },
    /** Writes CUDA's libraries of the cache directory to this folder instead. */
    pack: { type: 'string' },
    /** Restores them from this folder into the cache directory instead. */
    unpack: { type: 'string' },
  },
});
const cacheDir = resolve(flags['cache-dir']);
const progress = (text: string): void => void process.stderr.write(`${text}\n`);

if (flags.pack !== undefined) await pack(flags.pack);
else if (flags.unpack !== undefined) progress(await unpackSet(flags.unpack, cudaWheels, cacheDir));
else await check();

async function pack(folder: string): Promise<void> {
  const { pieces } = await packSet(cacheDir, cudaWheels, folder, maxPieceBytes);
  const totalBytes = pieces.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  progress(`${folder}: ${pieces.length} pieces, ${(totalBytes / 1e6).toFixed(0)} MB`);
}

async function check(): Promise<void> {
  const startedAt = new Date();
  const totalMs = Number(flags.seconds) * second;
  const budget = createBudget(totalMs);
  const taker = createRowTaker(budget, ({ on, check: name, verdict, value, detail }) => {
    progress(`${on}, ${name}: ${verdict} ${value} ${detail}`);
  });
  const report = await takeInventory(taker);
  if (report !== null) await checkAll(report, taker, budget);
  process.stdout.write(`${showRows(taker.rows)}\n`);
  const durationMs = Date.now() - startedAt.getTime();
  const machine = { cpu: cpuName(), cores: usableCores(), node: process.version };
  mkdirSync(dirname(resolve(flags.json)), { recursive: true });
  const result = { machine, startedAt: startedAt.toISOString(), durationMs, inventory: report, rows: taker.rows };
  writeFileSync(flags.json, `${JSON.stringify(result, null, 2)}\n`);
  progress(`${(durationMs / second).toFixed(0)} s; ${flags.json}`);
  // Not by itself: what a row did not get in time may still hold processes open.
  process.exit(report === null || hasFailure(taker.rows) ? 1 : 0);
}

function takeInventory(taker: RowTaker): Promise<DevicesReport | null> {
  return taker.take('machine', 'inventory', { leastMs: 0, mostMs: 60 * second }, async (part) => {
    const made = await readInventory(cacheDir, part.remainingMs());
    const names = made.devices.map(
      ({ candidate: { id, name }, verdict }) => `${id} ${name}${verdict.isUsable ? '' : ' (cannot be used)'}`,
    );
    return {
      isGood: made.devices.length > 0,
      value: `${made.devices.length} device(s)`,
      detail: `${usableCores()} cores; ${names.join('; ')}`,
      made,
    };
  });
}

async function checkAll(report: DevicesReport, taker: RowTaker, budget: TimeBudget): Promise<void> {
  const kinds = valueKinds();
  const wanted = flags.only?.split(',');
  const plans = planProviders(report).filter(({ provider }) => wanted?.includes(provider) ?? true);
  const isGpuUsable = plans.some(({ provider, reason }) => provider !== 'cpu' && reason === null);
  const reference: ReferenceValues = isGpuUsable ? await takeReference(kinds, taker) : new Map();
  for (const [index, plan] of plans.entries()) {
    const others = plans.slice(index).filter(({ reason }) => reason === null).length;
    progress(`${plan.provider}: ${(budget.remainingMs() / second).toFixed(0)} s left for ${others} provider(s)`);
    await checkProvider(plan, { taker, budget, cacheDir, kinds, reference });
  }
}

/** Values of a server on the CPU in full precision, for GPUs to be compared with. */
async function takeReference(kinds: readonly ValueKind[], taker: RowTaker): Promise<ReferenceValues> {
  const bounds = { leastMs: 10 * second, mostMs: 80 * second };
  const values = await taker.take('cpu', 'reference in fp32', bounds, async (part) => {
    const served = await serveOn({
      cacheDir,
      flags: ['--device', 'cpu', '--precision', 'fp32'],
      startTimeoutMs: Math.floor(part.remainingMs() / 2),
    });
    try {
      const made = await collectValues(served, kinds, part);
      const detail = [...made].map(([name, some]) => `${some.length} ${name}`).join(', ');
      return { isGood: null, value: '', detail, made };
    } finally {
      await served.end();
    }
  });
  return values ?? new Map();
}
