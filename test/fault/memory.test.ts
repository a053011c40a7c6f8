import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { forkExecutor } from '../../src/device/channel.ts';
import { defaultDeviceLimits } from '../../src/device/limits.ts';
import { createDeviceManager, type DeviceManager } from '../../src/device/manager.ts';
import { residentBytesOf } from '../../src/device/memory.ts';
import { RunFailure } from '../../src/device/pool.ts';
import type { RunBatch } from '../../src/executor/protocol.ts';
import { until } from '../support/executors.ts';

/** An executor that proves itself, and whose first real run takes memory without end. */
const glutton = `
const row = { values: Float32Array.of(1), indices: null };
const hoard = [];
let runs = 0;
process.on('message', (message) => {
  if (message.type === 'load') {
    process.send({ type: 'loaded', executionProvider: 'cpu', loadMs: 1, placements: [], timings: [] });
  } else if (message.type === 'run') {
    runs += 1;
    if (runs === 1) {
      const residentBytes = process.memoryUsage.rss();
      const { runId } = message;
      process.send({ type: 'result', runId, rows: [row], computeMs: 1, paddedTokens: 1, residentBytes, nextRunId: null });
    } else {
      setInterval(() => hoard.push(Buffer.alloc(20_000_000, 1)), 5);
    }
  } else process.exit(0);
});
`;
const folder = mkdtempSync(join(tmpdir(), 'trivec-glutton-'));
const entryPath = join(folder, 'glutton.mjs');
writeFileSync(entryPath, glutton);
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const batch: RunBatch = {
  modelId: 'm',
  head: 'logit',
  items: [{ ids: Int32Array.of(1), typeIds: null, keptRows: null }],
  queryRows: null,
};
const boundBytes = 300_000_000;

let manager: DeviceManager | null = null;
afterEach(() => manager?.stop());

/** Most memory that a process has had. */
const peakBytes = (pid: number) =>
  Number(/VmHWM:\s+(\d+)/u.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

describe.skipIf(process.platform !== 'linux')('an executor that takes memory without end', { timeout: 60_000 }, () => {
  it('is ended in the middle of its run, long before the machine is full, and replaced', async () => {
    const reasons: string[] = [];
    const pids: number[] = [];
    const launch = forkExecutor(entryPath);
    let peak = 0;
    manager = createDeviceManager({
      deviceId: 'cpu:0',
      deviceName: 'A CPU',
      precision: 'fp32',
      serves: [],
      executors: 1,
      threads: 1,
      provider: { name: 'cpu', deviceIndex: 0 },
      batchLimits: { maxBatchTokens: 256, maxBatchItems: 16 },
      costOf: () => null,
      timedHeads: () => [],
      onTimings: () => undefined,
      residentBytesOf(pid) {
        peak = Math.max(peak, peakBytes(pid));
        return residentBytesOf(pid);
      },
      launch(executorId) {
        const channel = launch(executorId);
        pids.push(channel.pid ?? 0);
        return channel;
      },
      models: [],
      proofRuns: [{ batch, judge: () => null }],
      clock: systemClock,
      random: Math.random,
      limits: { ...defaultDeviceLimits, maxExecutorBytes: boundBytes, memoryPollMs: 20, restartBaseMs: 10 },
      observer: {
        onMoved: () => undefined,
        onProved: () => undefined,
        onDied: (_id, reason) => reasons.push(reason),
      },
    });
    expect((await manager.start()).failures).toEqual([]);
    const failure = await manager
      .offer({ isUrgent: false, mayQueue: false })
      ?.take()
      .run(batch, 1)
      .result.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RunFailure);
    expect((failure as RunFailure).kind).toBe('executorGone');
    expect(reasons[0]).toContain('its memory grew to');
    expect(peak).toBeLessThan(6 * boundBytes);
    await until('the next executor to be ready', () => manager?.idleCount() === 1, 20_000);
    expect(pids).toHaveLength(2);
  });
});
