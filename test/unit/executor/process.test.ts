import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { requirement } from '../../support/require.ts';
import {
  batchOf,
  cacheDir,
  embeddedLoads,
  endDevices,
  processTestTimeoutMs,
  removeCache,
  run,
  startDevice,
  textOf,
} from './real-device.ts';

afterEach(endDevices);
afterAll(removeCache);

describe('the start of the real executor', { timeout: processTestTimeoutMs }, () => {
  it.each([
    ['a graph file that is not there', { graphPath: join(cacheDir, 'absent.onnx') }, 'absent.onnx'],
    ['a head that the graph lacks', { heads: ['logit'] as const }, 'trivec_logit'],
    ['a MaxSim head without its graph', { maxSimGraphPath: null }, 'MaxSim graph'],
  ])('fails on %s and says which model and what', async (_name, change, reason) => {
    const loads = (await embeddedLoads()).map((load) => ({ ...load, ...change }));
    const { failures } = await startDevice({ loads });
    expect(failures).toHaveLength(1);
    expect(failures[0]).toContain('all-MiniLM-L6-v2');
    expect(failures[0]).toContain(reason);
  });

  const procfs = requirement('procfs', existsSync('/proc/self/environ'), 'there is no /proc/self/environ');
  it.skipIf(procfs.skip)(
    procfs.title('shows it nothing of the environment but what it was given and the allocator settings'),
    async () => {
      const { pids } = await startDevice();
      const names = readFileSync(`/proc/${pids[0]}/environ`, 'utf8')
        .split('\0')
        .map((entry) => entry.split('=')[0] ?? '');
      const inheritedByFork = /^(NODE_CHANNEL_.*|NODE_V8_COVERAGE|)$/;
      expect(names.filter((name) => !inheritedByFork.test(name)).sort()).toEqual([
        'GLIBC_TUNABLES',
        'LANG',
        'MALLOC_ARENA_MAX',
        'MALLOC_MMAP_THRESHOLD_',
        'MALLOC_TOP_PAD_',
        'MALLOC_TRIM_THRESHOLD_',
      ]);
    },
  );

  it('and its end are clean with several executors, also in the middle of their runs', async () => {
    for (let round = 0; round < 3; round++) {
      const started = await startDevice({ executors: 4 });
      expect(started.failures).toEqual([]);
      const texts = Array.from({ length: 10 }, (_, seed) => textOf(20, seed));
      const runs = started.pids.map(() => run(started, batchOf('dense', texts)));
      await started.manager.stop();
      for (const { rows } of await Promise.all(runs)) expect(rows).toHaveLength(texts.length);
      expect(started.exits).toEqual(started.pids.map(() => 'its process ended with exit code 0'));
    }
  });
});
