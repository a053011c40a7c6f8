/** Owns folders of a test file, and waiting until a watcher has looked at them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { watchIntervalMs } from '../../src/http/file-watch.ts';
import type { FakeClock } from './fake-clock.ts';

/** A fresh folder that is removed after the tests of the file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'trivec-'));
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Lets the watchers on this clock look once; resolves when each of them waits for its next look. */
export async function lookOnce(clock: FakeClock): Promise<void> {
  const timers = clock.pendingTimers();
  await clock.advance(watchIntervalMs);
  while (clock.pendingTimers() < timers) await new Promise((resolve) => setImmediate(resolve));
}
