import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { findDevices } from '../../src/device/inventory/find.ts';
import { thisMachine } from '../../src/device/inventory/machine.ts';
import { softwareAdapter, webgpuRequirement } from '../support/webgpu.ts';

const dist = (file: string) => fileURLToPath(new URL(`../../dist/${file}`, import.meta.url));
const run = promisify(execFile);
const webgpu = webgpuRequirement();
const bare = { PATH: '/usr/bin:/bin', HOME: '/nonexistent', LD_LIBRARY_PATH: undefined };
const devices = async (environment: object, ...flags: string[]): Promise<string> =>
  (await run(process.execPath, [dist('main.js'), 'devices', ...flags], { env: { ...bare, ...environment } })).stdout;

describe('trivec devices', () => {
  it('prints JSON with the CPU as this machine has it', async () => {
    const report = JSON.parse(await devices({}, '--json'));
    const cpu = report.devices.find((device: { candidate: { id: string } }) => device.candidate.id === 'cpu:0');
    expect(cpu.candidate.details.cores).toBeGreaterThanOrEqual(1);
    expect(cpu.verdict.isUsable).toBe(true);
  });

  it('refuses a setting that it cannot read', async () => {
    const failed = await devices({ TRIVEC_DEVICE: 'gpu0' }).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 2, stderr: expect.stringContaining('"gpu0" is no device') });
  });

  it.skipIf(webgpu.skip)(webgpu.title('tries a software adapter for real, names it and does not take it'), async () => {
    const report = JSON.parse(await devices(softwareAdapter, '--json'));
    const adapter = report.devices.find((device: { candidate: { id: string } }) => device.candidate.id === 'webgpu:0');
    expect(adapter).toMatchObject({
      candidate: { name: expect.stringContaining('SwiftShader'), details: { vendor: 'Google', isSoftware: true } },
      verdict: { isUsable: true, hasFp16: false, isSoftware: true },
      auto: { isUsed: false, reason: expect.stringContaining('is software that runs on the CPU') },
    });
    expect(adapter.verdict.timing.runMs).toBeGreaterThan(adapter.verdict.timing.cpuRunMs);
    expect(adapter.verdict.libraries).toContainEqual(expect.stringContaining('libvk_swiftshader.so'));
    expect(await devices(softwareAdapter)).toMatch(/^webgpu:0 +yes +no +no +1\/\d+ of the CPU +SwiftShader/m);
  });
});

describe('the choice on a machine with a software adapter', () => {
  const options = {
    machine: thisMachine({ ...bare, ...softwareAdapter }),
    probeEntry: dist('executor/probe.js'),
  };

  it.skipIf(webgpu.skip)(webgpu.title('is not the adapter for auto, and is the adapter by name'), async () => {
    const found = await findDevices({ device: ['auto'], rerankDevice: ['webgpu'] }, options);
    expect(found.problems).toEqual([]);
    expect(found.devices.device.map(({ candidate }) => candidate.provider)).not.toContain('webgpu');
    expect(found.devices.rerankDevice).toMatchObject([
      { candidate: { id: 'webgpu:0' }, verdict: { isSoftware: true }, environment: softwareAdapter },
    ]);
  });
});

describe('an installation without CUDA', () => {
  it('names the missing library and what installs it, as the engine itself reports it', async () => {
    const machine = thisMachine({ ...bare });
    const withGpu = {
      ...machine,
      platform: 'linux',
      architecture: 'x64',
      list: (path: string) => (path === '/dev' ? ['nvidia0'] : path.endsWith('nvidia/gpus') ? ['0000:01:00.0'] : []),
      readText: (path: string) => (path.endsWith('information') ? 'Model: Some GPU\nDevice Minor: 0\n' : null),
      exists: (path: string) => path === '/dev/nvidia0',
    };
    const found = await findDevices({ device: ['cuda'] }, { machine: withGpu, probeEntry: dist('executor/probe.js') });
    expect(found.problems).toEqual([
      {
        wish: 'device',
        problem: expect.stringMatching(/^cuda:0 cannot be used: libonnxruntime_providers_shared\.so not found: run/),
      },
    ]);
  });
});
