/** Owns the trial of a device with the models that it would serve: one executor, loaded, proved, timed and ended. */
import type { Clock } from '../clock.ts';
import type { RunBatch } from '../executor/protocol.ts';
import type { LaunchExecutor } from './channel.ts';
import { openConversation } from './conversation.ts';
import type { DeviceLimits } from './limits.ts';
import { loadModels, prove, warmUpFailure, type WarmUpSettings } from './warm-up.ts';

/** What is tried. */
export interface Trial extends WarmUpSettings {
  readonly launch: LaunchExecutor;
  readonly clock: Clock;
  readonly limits: DeviceLimits;
  /** A run of ordinary size, whose time is taken. */
  readonly timedBatch: RunBatch;
}

/** What a trial came to. */
export type TrialOutcome =
  | { readonly isProved: true; /** @unit ms */ readonly runMs: number }
  | { readonly isProved: false; /** The end of a sentence about the device. */ readonly reason: string };

/** Runs of the timed batch; the first ones compile and allocate, so the shortest counts. */
const timedRuns = 3;

/** Whether the models run right there, and how fast. Never rejects; the executor is gone afterwards. */
export async function tryDevice(trial: Trial): Promise<TrialOutcome> {
  const { launch, clock, limits, proofRuns, timedBatch } = trial;
  try {
    const life = openConversation({ channel: launch('trial'), clock, limits, onGone: () => undefined });
    try {
      await loadModels(life, trial);
      for (const proof of proofRuns) await prove(life, proof);
      let runMs = Infinity;
      for (let run = 0; run < timedRuns; run += 1)
        runMs = Math.min(runMs, (await life.run(timedBatch).answer).computeMs);
      return { isProved: true, runMs };
    } finally {
      life.end('the trial is over');
    }
  } catch (error) {
    return { isProved: false, reason: warmUpFailure(error) };
  }
}
