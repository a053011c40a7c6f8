/** Owns one executor slot: launches the executor, has it prove itself, hands it runs and replaces it when it fails. */
import type { CancelTimer } from '../clock.ts';
import { openConversation } from './conversation.ts';
import type { Conversation, RunAnswer } from './conversation.ts';
import { nextExecutorState } from './executor-state.ts';
import type { ExecutorEvent } from './executor-state.ts';
import { restartDelayMs } from './limits.ts';
import { memoryMarks, showMegabytes, watchMemory, type MemoryMarks } from './memory.ts';
import { RunFailure } from './pool.ts';
import type { ExecutorState, RunResult, TakeWish } from './pool.ts';
import type { SlotOwner, SlotSettings, Supervisor } from './slot.ts';
import { loadModels, prove, warmUpFailure } from './warm-up.ts';

/** A slot that has not been started. */
export function createSupervisor(executorId: string, settings: SlotSettings, owner: SlotOwner): Supervisor {
  const { clock, limits, observer } = settings;
  let state: ExecutorState = 'dead';
  let current: Conversation | null = null;
  let provider: string | null = null;
  let reason: string | null = null;
  /** Why it is being replaced; a planned one is no failure and comes back at once. */
  let replacement: { readonly reason: string; readonly isPlanned: boolean } | null = null;
  let readySinceMs = 0;
  /** First ready of this life; null until then. */
  let provedAtMs: number | null = null;
  /** Whether dying is a fault to recover from: it has proved itself once, or others of the device have. */
  let mayRestart = false;
  let isGivenUp = false;
  let consecutiveFailures = 0;
  let badResults = 0;
  let nextProof = 0;
  /** Runs that it was given or is about to be. */
  let heldRuns = 0;
  let goodRuns = 0;
  let isDoubted = false;
  let marks: MemoryMarks | null = null;
  let residentBytes: number | null = null;
  let cancelTimer: CancelTimer = () => undefined;
  let cancelWatch: CancelTimer = () => undefined;
  let settleStart: (failure: string | null) => void = () => undefined;
  let settleStop: () => void = () => undefined;
  let stopped: Promise<void> | null = null;

  function move(event: ExecutorEvent): void {
    const from = state;
    state = nextExecutorState(from, event);
    if (state !== from) observer.onMoved(executorId, from, state);
  }

  /** The slot's one timer: the restart of a dead executor, or the proof of an idle one. */
  function schedule(delayMs: number, callback: () => void): void {
    cancelTimer();
    cancelTimer = clock.after(delayMs, callback);
  }

  function launch(): void {
    move('launched');
    try {
      const channel = settings.launch(executorId);
      const life = openConversation({ channel, clock, limits, onGone: becomeDead });
      current = life;
      void warmUp(life, channel.pid);
    } catch (error) {
      becomeDead(`it could not be launched: ${warmUpFailure(error)}`);
    }
  }

  async function warmUp(life: Conversation, pid: number | null): Promise<void> {
    const launchedAtMs = clock.nowMs();
    try {
      const loaded = await loadModels(life, settings);
      if (state !== 'starting') return;
      provider = loaded.executionProvider;
      settings.onTimings(loaded.timings);
      move('loaded');
      const loadedAtMs = clock.nowMs();
      let provedBytes = 0;
      for (const proof of settings.proofRuns) provedBytes = (await prove(life, proof)).residentBytes;
      // A stop that came meanwhile has moved it on: ask again, the state may have changed while waiting.
      if ((state as ExecutorState) !== 'warming') return;
      provedAtMs = clock.nowMs();
      mayRestart = true;
      reason = null;
      residentBytes = provedBytes;
      marks = memoryMarks(provedBytes, limits.maxExecutorBytes);
      watch(life, pid, marks.endBytes);
      observer.onProved(executorId, pid, loadedAtMs - launchedAtMs, provedAtMs - loadedAtMs);
      becomeReady('proved');
      settleStart(null);
      owner.onChange();
    } catch (error) {
      life.end(warmUpFailure(error));
    }
  }

  function watch(life: Conversation, pid: number | null, maxBytes: number): void {
    cancelWatch = watchMemory({
      clock,
      pid,
      read: settings.residentBytesOf,
      intervalMs: limits.memoryPollMs,
      maxBytes,
      onOver: (bytes) => {
        life.end(`its memory grew to ${showMegabytes(bytes)}, more than ${showMegabytes(maxBytes)}`);
      },
    });
  }

  function finished(life: Conversation): void {
    if (current !== life) return;
    heldRuns -= 1;
    if (heldRuns > 0) return;
    if (replacement !== null && stopped === null) life.stop();
    else becomeReady('finished');
  }

  function becomeReady(event: 'proved' | 'finished'): void {
    move(event);
    if (state !== 'ready') return;
    readySinceMs = clock.nowMs();
    // A run that failed may say something about the executor: it shows that it still can, before anything else.
    schedule(isDoubted ? 0 : limits.reproveIdleMs, proveAgain);
  }

  function proveAgain(): void {
    const proof = settings.proofRuns[nextProof++ % settings.proofRuns.length];
    if (current === null || proof === undefined) return;
    const life = current;
    hold();
    prove(life, proof).then(
      (proved) => {
        if (current !== life) return;
        residentBytes = proved.residentBytes;
        isDoubted = false;
        finished(life);
        owner.onChange();
      },
      (error: unknown) => {
        life.end(warmUpFailure(error));
      },
    );
  }

  /** Called once for each life, after the open run has been failed. */
  function becomeDead(cause: string): void {
    current = null;
    heldRuns = 0;
    cancelWatch();
    residentBytes = null;
    move('died');
    reason = replacement?.reason ?? cause;
    const isPlanned = replacement?.isPlanned ?? false;
    replacement = null;
    badResults = 0;
    isDoubted = false;
    const wasStable = provedAtMs !== null && clock.nowMs() - provedAtMs >= limits.stableAfterMs;
    // One that served well until something killed it is no crash loop, however short its life was.
    if (wasStable || goodRuns >= limits.stableAfterRuns) consecutiveFailures = 0;
    goodRuns = 0;
    provedAtMs = null;
    if (stopped !== null || !mayRestart) {
      observer.onDied(executorId, reason, null);
      giveUp(reason);
      return;
    }
    // One that had to be replaced before it was stable would be again: that is a loop, planned or not.
    const delayMs = isPlanned && wasStable ? 0 : restartDelayMs(consecutiveFailures++, limits, settings.random);
    observer.onDied(executorId, reason, delayMs);
    schedule(delayMs, launch);
  }

  function giveUp(failure: string): void {
    const isNews = !isGivenUp;
    isGivenUp = true;
    cancelTimer();
    settleStart(failure);
    settleStop();
    if (isNews) owner.onChange();
  }

  function beginStop(): void {
    cancelTimer();
    if (current === null) {
      giveUp('it was stopped before it had started');
      return;
    }
    if (state !== 'draining') move('drain');
    current.stop();
  }

  function hold(): void {
    if (heldRuns === 0) move('taken');
    heldRuns += 1;
    cancelTimer();
  }

  async function resultOf(life: Conversation, answer: Promise<RunAnswer>): Promise<RunResult> {
    let saidBytes = 0;
    try {
      const result = await answer;
      saidBytes = result.residentBytes;
      if (current === life) residentBytes = saidBytes;
      goodRuns += 1;
      return result;
    } catch (error) {
      if (error instanceof RunFailure && error.kind === 'runFailed') isDoubted = true;
      throw error;
    } finally {
      // Nobody is told: who ran the batch handles its result first and then looks for more work by itself.
      finished(life);
      if (state === 'ready' || state === 'busy') checkMemory(saidBytes);
    }
  }

  function hasRoom(wish: TakeWish): boolean {
    if (state === 'ready') return true;
    return state === 'busy' && !isDoubted && current !== null && current.hasRoom(wish);
  }

  function checkMemory(saidBytes: number): void {
    if (marks === null || saidBytes <= marks.recycleBytes || !owner.canSpare(executorId)) return;
    const grown = `its memory grew to ${showMegabytes(saidBytes)}, its mark is ${showMegabytes(marks.recycleBytes)}`;
    replace(grown, true);
  }

  /** Ends it after all that it was given, for which it has the time that runs have, to be launched anew. */
  function replace(why: string, isPlanned: boolean): void {
    replacement = { reason: why, isPlanned };
    reason = why;
    cancelTimer();
    move('drain');
    if (heldRuns === 0) current?.stop();
  }

  return {
    executorId,
    start() {
      return new Promise((resolve) => {
        settleStart = resolve;
        launch();
      });
    },
    revive() {
      if (!isGivenUp || stopped !== null) return;
      isGivenUp = false;
      mayRestart = true;
      const delayMs = restartDelayMs(consecutiveFailures++, limits, settings.random);
      observer.onDied(executorId, reason ?? 'it was given up', delayMs);
      schedule(delayMs, launch);
    },
    stop() {
      stopped ??= new Promise((resolve) => {
        settleStop = resolve;
        beginStop();
      });
      return stopped;
    },
    hasRoom,
    backlogMs: (isUrgent) => current?.backlogMs(isUrgent) ?? 0,
    take() {
      const life = current;
      if (life === null) throw new Error('Only an executor that is alive can be taken.');
      hold();
      let isUsed = false;
      return (batch, options) => {
        if (isUsed) throw new Error('A taken executor runs one batch.');
        isUsed = true;
        const { answer, skip } = life.run(batch, options);
        return { result: resultOf(life, answer), skip };
      };
    },
    reportBadResult() {
      if (state !== 'ready' && state !== 'busy') return;
      badResults++;
      if (badResults < limits.maxConsecutiveBadResults) return;
      replace(`it gave values that are not finite in ${badResults} runs in a row`, false);
    },
    reportGoodResult() {
      badResults = 0;
    },
    state: () => state,
    readySinceMs: () => readySinceMs,
    isGivenUp: () => isGivenUp,
    downReason: () => reason,
    executionProvider: () => provider,
    residentBytes: () => residentBytes,
  };
}
