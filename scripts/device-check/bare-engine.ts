/** Owns the bare engine: the executors that a server would have, loaded and proved, without a server around them. */
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/clock.ts';
import { loadSettings } from '../../src/config/load.ts';
import { cudaLibraryEnvironment } from '../../src/cuda/library-environment.ts';
import { openConversation, type Conversation } from '../../src/device/conversation.ts';
import { usableCores } from '../../src/device/cpu.ts';
import type { FoundDevice } from '../../src/device/inventory/find.ts';
import { defaultDeviceLimits } from '../../src/device/limits.ts';
import { batchLimitsOf, placeExecutors } from '../../src/device/placement.ts';
import { everyHead, loadModels, prove } from '../../src/device/warm-up.ts';
import { abilitiesOf, openGroup, type OpenedGroup } from '../../src/engine/group.ts';
import type { ModelUse } from '../../src/model/role.ts';
import type { RunBatch, RunItem } from '../../src/executor/protocol.ts';
import { bundledModelsDir } from '../../src/model/bundled.ts';
import { deviceEnvironment, type ProviderPlan } from './inventory.ts';

const executorEntry = fileURLToPath(new URL('../../dist/executor/main.js', import.meta.url));
const limits = { ...defaultDeviceLimits, runTimeoutMs: 120_000 };

/** The settings of a server without flags. */
export const defaultSettings = loadSettings({ flags: {}, environment: {}, configFile: null }).settings;

/** Models as a server with that precision opens them on those devices; nothing has run. */
export function openModels(
  { provider, devices }: ProviderPlan,
  uses: readonly ModelUse[],
  cacheDir: string,
  servedPrecision: string,
): Promise<OpenedGroup> {
  const cuda = provider === 'cuda' ? cudaLibraryEnvironment(cacheDir, deviceEnvironment['LD_LIBRARY_PATH'])?.env : {};
  const environment = provider === 'cpu' ? {} : { ...deviceEnvironment, ...cuda };
  const found = devices.flatMap(({ candidate, verdict }): FoundDevice[] =>
    verdict.isUsable ? [{ candidate, verdict, environment }] : [],
  );
  const group = { devices: found, uses };
  const abilities = abilitiesOf(group, 'auto');
  const [best] = abilities;
  const chosen = abilities.find(({ hasFloat16 }) => hasFloat16 === servedPrecision.includes('fp16')) ?? best;
  if (chosen === undefined) throw new Error('a device has abilities');
  return openGroup(group, chosen, {
    settings: { ...defaultSettings, modelsDir: bundledModelsDir, cacheDir },
    executorEntry,
    locateFor: () => (name) => Promise.reject(new Error(`${name} is not in the package`)),
    log: { info: () => undefined, warn: () => undefined },
    takenIds: new Set(),
  });
}

/** Executors in this process's hands. */
export interface BareEngine {
  readonly executors: number;
  /** What each executor was proved by before it may run anything. */
  readonly proofs: number;
  /** Runs the texts on all executors, in batches as large as the server's. */
  run(head: RunBatch['head'], modelId: string, ids: readonly Int32Array[]): Promise<void>;
  end(): void;
}

/**
 * Launches as many executors as a server would, and has each load and prove itself.
 * @throws Error that names the compute nodes which would run elsewhere, or the answer that is not the stored one
 */
export async function startBareEngine({
  provider,
  devices,
  launch,
  loads,
  proofRuns,
}: OpenedGroup): Promise<BareEngine> {
  const { executors, threads } = placeExecutors(provider, usableCores(), defaultSettings);
  const most = batchLimitsOf(provider, defaultSettings);
  const lives: Conversation[] = [];
  const end = () => {
    for (const life of lives) life.end('the check is over');
  };
  try {
    for (const { candidate } of devices) {
      for (let executor = 0; executor < executors; executor += 1) {
        const channel = launch(`bare ${candidate.id}/${executor}`);
        const life = openConversation({ channel, clock: systemClock, limits, onGone: () => undefined });
        lives.push(life);
        const choice = { name: provider, deviceIndex: candidate.index };
        const timedHeads = () => everyHead(loads);
        await loadModels(life, { models: loads, threads, provider: choice, proofRuns, timedHeads });
        for (const proof of proofRuns) await prove(life, proof);
      }
    }
  } catch (error) {
    end();
    throw error;
  }
  return {
    executors: lives.length,
    proofs: proofRuns.length,
    async run(head, modelId, ids) {
      const batches = batchesOf(ids, most.maxBatchItems, most.maxBatchTokens);
      await Promise.all(
        lives.map(async (life) => {
          for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) {
            await life.run({ modelId, head, items: batch, queryRows: null }).answer;
          }
        }),
      );
    },
    end,
  };
}

/** Texts in their order, in batches within the bounds; one text is always within them. */
function batchesOf(ids: readonly Int32Array[], maxItems: number, maxTokens: number): RunItem[][] {
  const batches: RunItem[][] = [];
  let tokens = 0;
  for (const text of ids) {
    const last = batches.at(-1);
    const item: RunItem = { ids: text, typeIds: null, keptRows: null };
    tokens += text.length;
    if (last !== undefined && last.length < maxItems && tokens <= maxTokens) last.push(item);
    else {
      batches.push([item]);
      tokens = text.length;
    }
  }
  return batches;
}
