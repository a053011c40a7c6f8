import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DeviceCandidate } from '../../../../src/device/inventory/candidate.ts';
import { findDevices, takeInventory } from '../../../../src/device/inventory/find.ts';
import type { Machine } from '../../../../src/device/inventory/machine.ts';
import { fakeMachine } from '../../../support/fake-machine.ts';

const gpuFiles = (count: number): Record<string, string> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, minor) => [
      [`/dev/nvidia${minor}`, ''],
      [`/proc/driver/nvidia/gpus/0000:0${minor}:00.0/information`, `Model: GPU ${minor}\nDevice Minor: ${minor}\n`],
    ]).flat(),
  );
const manifest = (library: string) => ({
  '/etc/vulkan/icd.d/icd.json': JSON.stringify({ ICD: { library_path: library } }),
});
const hardware = manifest('libvulkan_radeon.so');
const software = manifest('libvulkan_lvp.so');

describe('finding devices', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'trivec-find-'));
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  /** Probes that leave a file each; those of the devices in `broken` end with an error. */
  const optionsFor = (machine: Machine, broken: readonly string[] = []) => {
    const probeEntry = join(directory, 'probe.cjs');
    const probed = join(directory, 'probed-');
    writeFileSync(
      probeEntry,
      `process.on('message', ({ provider, deviceIndex }) => {
        const id = provider + ':' + deviceIndex;
        require('node:fs').writeFileSync('${probed}' + id + (process.env.LIBRARIES ?? ''), '');
        process.send(${JSON.stringify(broken)}.includes(id)
          ? { type: 'failed', reason: 'out of memory' }
          : { type: 'probed', relativeError: 0, rows: 16, runMs: 1, cpuRunMs: 9, hasFp16: true, libraries: [] });
      });`,
    );
    return { machine, probeEntry };
  };
  const probed = (): string[] =>
    readdirSync(directory)
      .filter((name) => name.startsWith('probed-'))
      .map((name) => name.slice('probed-'.length));
  const idsOf = (devices: readonly { candidate: DeviceCandidate }[]): string[] =>
    devices.map(({ candidate }) => candidate.id);

  it('starts nothing for the CPU, whatever the machine has', async () => {
    const found = await findDevices({ device: ['cpu'] }, optionsFor(fakeMachine({ ...gpuFiles(2), ...hardware })));
    expect(idsOf(found.devices.device)).toEqual(['cpu:0']);
    expect(probed()).toEqual([]);
    expect(found.refused).toEqual([]);
  });

  it('starts nothing for auto without a sign of a GPU, and says what is missing', async () => {
    const found = await findDevices({ device: ['auto'] }, optionsFor(fakeMachine({})));
    expect(idsOf(found.devices.device)).toEqual(['cpu:0']);
    expect(probed()).toEqual([]);
    expect(found.refused.map(({ id }) => id)).toEqual(['cuda', 'webgpu']);
  });

  it('starts nothing for auto where the only adapter is known to be software, but tries it by name', async () => {
    const options = optionsFor(fakeMachine(software));
    const found = await findDevices({ device: ['auto'] }, options);
    expect(idsOf(found.devices.device)).toEqual(['cpu:0']);
    expect(found.refused).toContainEqual({ id: 'webgpu:0', reason: expect.stringContaining('llvmpipe is software') });
    expect(probed()).toEqual([]);
    const named = await findDevices({ device: ['webgpu'] }, options);
    expect(idsOf(named.devices.device)).toEqual(['webgpu:0']);
    expect(probed()).toEqual(['webgpu:0']);
  });

  it('does not try WebGPU for auto where CUDA will do', async () => {
    const found = await findDevices({ device: ['auto'] }, optionsFor(fakeMachine({ ...gpuFiles(2), ...hardware })));
    expect(idsOf(found.devices.device)).toEqual(['cuda:0', 'cuda:1']);
    expect(probed()).toEqual(['cuda:0', 'cuda:1']);
  });

  it('tries the next provider for auto where no device of one works', async () => {
    const options = optionsFor(fakeMachine({ ...gpuFiles(1), ...hardware }), ['cuda:0']);
    const found = await findDevices({ device: ['auto'] }, options);
    expect(idsOf(found.devices.device)).toEqual(['webgpu:0']);
    expect(found.refused).toEqual([{ id: 'cuda:0', reason: expect.stringContaining('its memory is taken') }]);
  });

  it('answers each wish, with every problem at once', async () => {
    const options = optionsFor(fakeMachine(gpuFiles(2)), ['cuda:1']);
    const wishes = { device: ['auto'], embedDevice: ['cuda:1'], sparseDevice: ['webgpu'], rerankDevice: ['cpu'] };
    const found = await findDevices(wishes, options);
    expect(idsOf(found.devices.device)).toEqual(['cuda:0']);
    expect(idsOf(found.devices.rerankDevice)).toEqual(['cpu:0']);
    expect(found.problems).toEqual([
      { wish: 'embedDevice', problem: expect.stringMatching(/^cuda:1 cannot be used: its memory is taken/) },
      { wish: 'sparseDevice', problem: expect.stringMatching(/^webgpu cannot be used: no Vulkan driver/) },
    ]);
    expect(found.devices.embedDevice).toEqual([]);
  });

  it('hands the environment that a device was tried in to its executors', async () => {
    const environmentFor = ({ provider }: DeviceCandidate) => ({ LIBRARIES: `-with-${provider}` });
    const machine = fakeMachine(gpuFiles(1), { variables: { HOME: '/h', TRIVEC_API_KEY: 'k' } });
    const found = await findDevices({ device: ['auto'] }, { ...optionsFor(machine), environmentFor });
    expect(probed()).toEqual(['cuda:0-with-cuda']);
    expect(found.devices.device[0]?.environment).toEqual({
      HOME: '/h',
      LIBRARIES: '-with-cuda',
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
      ORT_DISABLE_TELEMETRY: '1',
    });
  });

  it('lists and tries everything for an inventory, software too', async () => {
    const inventory = await takeInventory(optionsFor(fakeMachine({ ...gpuFiles(1), ...software })));
    expect(idsOf(inventory.results)).toEqual(['cuda:0', 'webgpu:0', 'cpu:0']);
    expect(probed()).toEqual(['cuda:0', 'webgpu:0']);
  });
});
