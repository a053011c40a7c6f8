/** Owns the rows about a server that runs: what it says of itself, how fast it is, what it keeps, what it survives. */
import { readFileSync } from 'node:fs';
import type { ProviderName } from '../../src/executor/protocol.ts';
import { executorPids } from '../../test/support/executors.ts';
import type { Served } from '../../test/support/served.ts';
import type { TimeBudget } from './budget.ts';
import { measureGrowth } from './memory.ts';
import type { Lane, Offer } from './offer.ts';
import { killUnderLoad } from './recovery.ts';
import { CannotRun, type Finding } from './rows.ts';
import { servedDevices } from './serve.ts';
import { measureSpeed } from './speed.ts';
import { tokensIn, type SizedTexts } from './texts.ts';

/** Files that an executor on the provider must have mapped. */
const libraries: Readonly<Record<ProviderName, RegExp>> = {
  cpu: /libonnxruntime\.so/u,
  webgpu: /libvulkan|libvk_|libwebgpu|dawn/iu,
  cuda: /libonnxruntime_providers_cuda\.so/u,
};

function hasMapped(pid: number, pattern: RegExp): boolean {
  return pattern.test(readFileSync(`/proc/${pid}/maps`, 'utf8'));
}

/** What `info` says ran, beside what the executors have mapped; makes the label of the precision. */
export async function checkInfo(served: Served, provider: ProviderName): Promise<Finding<string>> {
  const all = await servedDevices(served);
  const devices = all.filter(({ id }) => id.startsWith(`${provider}:`));
  const isAsAsked = devices.length > 0 && devices.every((device) => device.executionProvider === provider);
  const isProcKnown = process.platform === 'linux';
  const pids = isProcKnown ? executorPids(served.pid).filter((pid) => hasMapped(pid, libraries[provider])) : [];
  return {
    isGood:
      isAsAsked && devices.every(({ state }) => state === 'ready') && (!isProcKnown || pids.length >= devices.length),
    value: [...new Set(devices.map(({ precision }) => precision))].join(', '),
    detail:
      devices.map(({ id, name, executionProvider }) => `${id} ${name} runs on ${executionProvider}`).join('; ') +
      (isProcKnown ? `; ${pids.length} executor(s) have its library mapped` : ''),
    facts: { devices: all, pids },
    made: devices.map(({ precision }) => precision).join('+'),
  };
}

const showRate = (rate: number | null): string => (rate === null ? '-' : rate.toFixed(0));

/** Tokens per second of one model and one length by every way; makes the fastest. */
export async function checkSpeed(
  { baseUrl }: Served,
  { spoken }: Lane,
  sized: SizedTexts,
  budget: TimeBudget,
): Promise<Finding<number>> {
  const speeds = await measureSpeed(baseUrl, spoken, sized, budget);
  const mean = tokensIn(sized.ids) / sized.ids.length;
  return {
    isGood: null,
    value: speeds.map(({ tokensPerSecond }) => showRate(tokensPerSecond)).join(' / '),
    detail: `tokens/s ${speeds.map(({ way }) => way).join(' / ')}; ${mean.toFixed(1)} tokens a text`,
    facts: { speeds, tokensOfText: mean },
    made: Math.max(0, ...speeds.map(({ tokensPerSecond }) => tokensPerSecond ?? 0)),
  };
}

/** Memory around random requests. */
export async function checkMemory(
  served: Served,
  provider: ProviderName,
  { methods }: Offer,
  budget: TimeBudget,
): Promise<Finding> {
  if (process.platform !== 'linux') throw new CannotRun('only Linux tells what processes keep');
  const { before, after, requests, wantedRequests } = await measureGrowth(served, provider === 'cuda', methods, budget);
  const gpu =
    before.gpuMebibytes === null || after.gpuMebibytes === null
      ? ''
      : `; GPU ${before.gpuMebibytes} -> ${after.gpuMebibytes} MiB`;
  return {
    isGood: null,
    value: `${before.residentMegabytes.toFixed(0)} -> ${after.residentMegabytes.toFixed(0)} MB`,
    detail: `resident, all processes, ${requests} of ${wantedRequests} requests of random shapes${gpu}`,
    facts: { before, after, requests },
    made: null,
  };
}

/** Executors killed under load: every call must be answered, and the server be ready again. */
export async function checkRecovery(
  served: Served,
  { spoken }: Lane,
  { texts }: SizedTexts,
  budget: TimeBudget,
): Promise<Finding> {
  if (process.platform !== 'linux') throw new CannotRun('executors are found through /proc, which only Linux has');
  const ask = (index: number) => served.call(spoken.method, spoken.params([texts[index % texts.length] ?? '']));
  const recovery = await killUnderLoad(served, ask, budget);
  const { killed, calls, answered, refused, missing, readyAgainMs } = recovery;
  const errors = Object.entries(refused).map(([code, count]) => `${count} refused with ${code}`);
  return {
    isGood: missing === 0 && readyAgainMs !== null && killed > 0,
    value: `${missing} missing`,
    detail:
      `${killed} executor(s) killed, ${answered} of ${calls} calls answered${errors.length === 0 ? '' : `, ${errors.join(', ')}`}; ` +
      (readyAgainMs === null ? 'NOT ready again' : `ready again after ${(readyAgainMs / 1000).toFixed(1)} s`),
    facts: recovery,
    made: null,
  };
}
