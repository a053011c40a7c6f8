import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { findDevices, type FoundDevice } from '../../src/device/inventory/find.ts';
import { thisMachine } from '../../src/device/inventory/machine.ts';
import { defaultDeviceLimits } from '../../src/device/limits.ts';
import { tryGroup } from '../../src/engine/try-group.ts';
import { softwareAdapter, webgpuRequirement } from '../support/webgpu.ts';
import { goldenFolder } from '../unit/model/golden-models.ts';

const webgpu = webgpuRequirement();
const dist = (file: string) => fileURLToPath(new URL(`../../dist/${file}`, import.meta.url));
const cacheDir = mkdtempSync(join(tmpdir(), 'trivec-trial-'));
afterAll(() => {
  rmSync(cacheDir, { recursive: true });
});

/** The software adapter and the CPU, the adapter as one that claims more than it can. */
async function found(): Promise<{ boaster: FoundDevice; cpu: FoundDevice }> {
  const machine = thisMachine({ PATH: '/usr/bin:/bin', HOME: '/nonexistent', ...softwareAdapter });
  const { devices } = await findDevices(
    { named: ['webgpu'], cpu: ['cpu'] },
    { machine, probeEntry: dist('executor/probe.js') },
  );
  const [adapter] = devices.named;
  const [cpu] = devices.cpu;
  if (adapter === undefined || cpu === undefined) throw new Error('the adapter was not found');
  return { boaster: { ...adapter, verdict: { ...adapter.verdict, hasFp16: true } }, cpu };
}

describe.skipIf(webgpu.skip)(webgpu.title('a GPU that is tried with the served models'), { timeout: 300_000 }, () => {
  it('is given up in half precision where that does not run, and not taken where the CPU is faster', async () => {
    const { boaster, cpu } = await found();
    const warnings: string[] = [];
    const trial = await tryGroup(
      { devices: [boaster], uses: ['embed'] },
      {
        settings: {
          modelsDir: '/nonexistent',
          cacheDir,
          embedModel: [goldenFolder('bert-dense')],
          sparseModel: [],
          multiModel: [],
          rerankModel: [],
          precision: 'auto',
        },
        executorEntry: dist('executor/main.js'),
        locateFor: () => () => Promise.resolve(null),
        log: { info: () => undefined, warn: (message) => warnings.push(message) },
        takenIds: new Set(),
        clock: systemClock,
        limits: { ...defaultDeviceLimits, runTimeoutMs: 60_000 },
        cpu,
        cores: 2,
      },
    );
    expect(warnings).toEqual([expect.stringMatching(/^webgpu is not taken in fp16: /u)]);
    expect(trial).toMatchObject({ isTaken: false, reason: expect.stringMatching(/where the CPU takes \d/u) });
  });
});
