/** Owns what the tests of downloads share: a fake hub, a fresh cache, and time that passes at once. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../../src/clock.ts';
import { ConfigurationError } from '../../../src/errors.ts';
import { hubLimits } from '../../../src/model/hub/limits.ts';
import type { HubLimits } from '../../../src/model/hub/limits.ts';
import { silentProgress } from '../../../src/model/hub/progress.ts';
import type { Hub } from '../../../src/model/hub/pull.ts';
import { createFakeHub } from '../../support/fake-hub.ts';
import type { FakeHub } from '../../support/fake-hub.ts';

/** A clock on which pauses pass at once, and what watches over others waits to be told. */
export interface HastyClock extends Clock {
  /** Every pause that passed. @unit ms */
  readonly pausesMs: readonly number[];
  /** Fires the timers that watch for silence. */
  fireStalls(): void;
}

/** A hasty clock; timers of a watch, known by their delay, do not fire by themselves. */
export function createHastyClock(limits: HubLimits): HastyClock {
  const pausesMs: number[] = [];
  const stalls = new Set<() => void>();
  let nowMs = 0;
  return {
    pausesMs,
    nowMs: () => nowMs,
    after(delayMs, callback) {
      if (delayMs === limits.heartbeatMs) return () => undefined;
      if (delayMs === limits.stallMs) {
        stalls.add(callback);
        return () => stalls.delete(callback);
      }
      const timer = setImmediate(() => {
        nowMs += delayMs;
        pausesMs.push(delayMs);
        callback();
      });
      return () => {
        clearImmediate(timer);
      };
    },
    fireStalls() {
      for (const callback of [...stalls]) callback();
    },
  };
}

/** A fake hub and a cache for one test. */
export interface HubRig {
  readonly fake: FakeHub;
  readonly hub: Hub;
  readonly clock: HastyClock;
  readonly cacheDir: string;
  /** What a person was told. */
  readonly notes: readonly string[];
  /** A folder for anything else. */
  readonly folder: string;
}

/** What a test may want differently. */
export interface RigOptions {
  readonly token?: string;
  readonly limits?: Partial<HubLimits>;
  readonly connection?: Partial<Hub['connection']>;
}

/** Runs a test with a fresh rig, which is gone afterwards. */
export async function withRig(options: RigOptions, test: (rig: HubRig) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-hub-'));
  const fake = await createFakeHub();
  const limits = { ...hubLimits, ...options.limits };
  const clock = createHastyClock(limits);
  const notes: string[] = [];
  const direct = { endpoint: fake.url, token: options.token ?? null, httpProxy: null, httpsProxy: null, noProxy: '' };
  const cacheDir = join(folder, 'hub');
  const hub: Hub = {
    connection: { ...direct, ...options.connection },
    cacheDir,
    pacing: { clock, random: () => 0.5, limits },
    progress: { ...silentProgress, onNote: (message) => notes.push(message) },
  };
  try {
    await test({ fake, hub, clock, cacheDir, notes, folder });
  } finally {
    await fake.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The problems that a step is refused with; a step that succeeds is none. */
export async function refusalOf(step: Promise<unknown>): Promise<string> {
  try {
    await step;
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems.join('\n');
    throw error;
  }
  return 'it was not refused';
}

/** Every file and link under a folder, by its path inside it. */
export async function pathsIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
  return paths.map((path) => path.slice(folder.length + 1)).sort();
}
