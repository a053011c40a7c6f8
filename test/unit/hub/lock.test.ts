/** Owns the rules of two processes that want the same model. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pathsOf } from '../../../src/model/hub/cache.ts';
import { processPlace } from '../../../src/model/hub/lock.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { misbehave } from '../../support/fake-hub.ts';
import { refusalOf, withRig } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);

/** Leaves a lock as another process would. */
async function leaveLock(cacheDir: string, content: unknown): Promise<string> {
  const { lock } = pathsOf(cacheDir, tinyId);
  await mkdir(dirname(lock), { recursive: true });
  await writeFile(lock, typeof content === 'string' ? content : JSON.stringify(content));
  return lock;
}

/** The id of a process that has ended. */
function endedProcess(): number {
  return spawnSync(process.execPath, ['-e', '']).pid;
}

describe('the lock of a repository', () => {
  it('lets one pull download while the other waits, and then finds all files there', async () => {
    await withRig({ limits: { maxLockWaitMs: Infinity, ownerDeadMs: Infinity } }, async ({ fake, hub, notes }) => {
      fake.put(tinyId, await tinyRepository());
      const pulls = await Promise.all([pullModel(hub, tiny, 'auto'), pullModel(hub, tiny, 'auto')]);
      expect(pulls[0]).toEqual(pulls[1]);
      expect(fake.asked(graphPath)).toHaveLength(1);
      expect(notes.filter((note) => note.startsWith('waiting for process'))).toHaveLength(1);
    });
  });

  it('is gone after a pull, also after one that failed', async () => {
    await withRig({}, async ({ fake, hub, cacheDir }) => {
      fake.put(tinyId, await tinyRepository());
      fake.next('/revision/main', misbehave.status(403));
      await refusalOf(pullModel(hub, tiny, 'auto'));
      expect(existsSync(pathsOf(cacheDir, tinyId).lock)).toBe(false);
      await pullModel(hub, tiny, 'auto');
      expect(existsSync(pathsOf(cacheDir, tinyId).lock)).toBe(false);
    });
  });

  it('of a process that has ended is taken over at once', async () => {
    await withRig({}, async ({ fake, hub, cacheDir, clock }) => {
      fake.put(tinyId, await tinyRepository());
      const lock = await leaveLock(cacheDir, { id: 'gone', pid: endedProcess(), place: processPlace() });
      await pullModel(hub, tiny, 'auto');
      expect(clock.pausesMs).toEqual([]);
      expect(existsSync(lock)).toBe(false);
    });
  });

  it.each([
    ['a process on another machine', { id: 'far', pid: 1, place: 'elsewhere' }],
    ['a live process that shows no sign of life', { id: 'hung', pid: process.ppid, place: processPlace() }],
    ['nobody knows, since the file is not complete', '{"id":'],
  ])('of %s is taken over after the silence allowed', async (_, owner) => {
    await withRig({ limits: { ownerDeadMs: 60_000, lockPollMs: 1_000 } }, async ({ fake, hub, cacheDir, clock }) => {
      fake.put(tinyId, await tinyRepository());
      await leaveLock(cacheDir, owner);
      await pullModel(hub, tiny, 'auto');
      expect(clock.pausesMs).toHaveLength(60);
    });
  });

  it('a takeover that was left half done does not block for ever', async () => {
    await withRig({}, async ({ fake, hub, cacheDir }) => {
      fake.put(tinyId, await tinyRepository());
      const lock = await leaveLock(cacheDir, { id: 'gone', pid: endedProcess(), place: processPlace() });
      await writeFile(`${lock}.takeover`, '');
      await pullModel(hub, tiny, 'auto');
      expect(existsSync(`${lock}.takeover`)).toBe(false);
    });
  });

  it('is waited for no longer than the bound', async () => {
    const limits = { ownerDeadMs: Infinity, maxLockWaitMs: 5_000, lockPollMs: 1_000 };
    await withRig({ limits }, async ({ fake, hub, cacheDir, clock }) => {
      fake.put(tinyId, await tinyRepository());
      await leaveLock(cacheDir, { id: 'busy', pid: process.ppid, place: processPlace() });
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toContain('another process has been downloading');
      expect(clock.pausesMs).toHaveLength(5);
      expect(fake.requests).toEqual([]);
    });
  });
});
