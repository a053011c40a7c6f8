import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listCuda, staticReason } from '../../../../src/device/inventory/list-cuda.ts';
import { thisMachine } from '../../../../src/device/inventory/machine.ts';
import type { Machine } from '../../../../src/device/inventory/machine.ts';
import { gpusInProc, gpusInSmi, kernelDriverVersion, visibleGpus } from '../../../../src/device/inventory/nvidia.ts';
import { fakeMachine } from '../../../support/fake-machine.ts';

const smiText = [
  'GPU-11111111-aaaa, 00000000:18:00.0, 143771, 580.65.06, 9.0, NVIDIA H200',
  'GPU-22222222-bbbb, 00000000:2A:00.0, [N/A], 580.65.06, [N/A], NVIDIA GB10, odd',
  '',
].join('\n');
const version =
  'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)\nGCC version:\n';
const information = (minor: number) =>
  `Model: \t\t NVIDIA L4\nIRQ:   \t\t 91\nGPU UUID: \t GPU-3333-${minor}\nBus Location: \t 0000:00:1e.0\nDevice Minor: \t ${minor}\n`;
const withModule = {
  '/proc/driver/nvidia/version': version,
  '/proc/driver/nvidia/gpus/0000:00:1e.0/information': information(0),
  '/proc/driver/nvidia/gpus/0000:00:1f.0/information': information(1),
};

describe('the answer of nvidia-smi', () => {
  it('gives name, memory, driver and compute capability, and null for what it does not know', () => {
    expect(gpusInSmi(smiText)).toEqual([
      {
        name: 'NVIDIA H200',
        uuid: 'GPU-11111111-aaaa',
        busId: '00000000:18:00.0',
        memoryBytes: 143_771 * 1_048_576,
        driverVersion: '580.65.06',
        computeCapability: '9.0',
      },
      {
        name: 'NVIDIA GB10, odd',
        uuid: 'GPU-22222222-bbbb',
        busId: '00000000:2A:00.0',
        memoryBytes: null,
        driverVersion: '580.65.06',
        computeCapability: null,
      },
    ]);
  });

  it.each(['', 'No devices were found', 'a,b,c,d,e,f', '\u0000\n,,,,,\nGPU-1'])(
    'gives no GPU where it is %j',
    (text) => {
      expect(gpusInSmi(text)).toEqual([]);
    },
  );

  it('is believed for 64 GPUs at most', () => {
    expect(gpusInSmi('GPU-1, 0:0, 1, 580.1, 9.0, x\n'.repeat(1000))).toHaveLength(64);
  });
});

describe('the kernel module', () => {
  it('tells its version, and of the GPUs whose device file is here', () => {
    const machine = fakeMachine({ ...withModule, '/dev/nvidia1': '' });
    expect(kernelDriverVersion(machine)).toBe('580.65.06');
    expect(gpusInProc(machine)).toEqual([
      {
        name: 'NVIDIA L4',
        uuid: 'GPU-3333-1',
        busId: '0000:00:1f.0',
        memoryBytes: null,
        driverVersion: '580.65.06',
        computeCapability: null,
      },
    ]);
  });
});

describe('CUDA_VISIBLE_DEVICES', () => {
  const gpus = gpusInSmi(smiText);
  it.each([
    [undefined, ['GPU-11111111-aaaa', 'GPU-22222222-bbbb']],
    ['1,0', ['GPU-22222222-bbbb', 'GPU-11111111-aaaa']],
    ['GPU-2222', ['GPU-22222222-bbbb']],
    ['0,9,1', ['GPU-11111111-aaaa']],
    ['MIG-7', ['MIG-7']],
    ['0,0', ['GPU-11111111-aaaa']],
    ['-1', []],
    ['', []],
  ])('%j shows %j', (wanted, uuids) => {
    expect(visibleGpus(gpus, wanted).map(({ uuid }) => uuid)).toEqual(uuids);
  });
});

describe('without a CUDA device the reason', () => {
  const onBus = { '/sys/bus/pci/devices/0/vendor': '0x10de\n', '/sys/bus/pci/devices/0/class': '0x030200\n' };
  it.each<[string, Machine, string]>([
    ['says that there is none', fakeMachine({}), 'no NVIDIA GPU was found'],
    ['is the missing driver where the bus has one', fakeMachine(onBus), 'install the NVIDIA driver, 580 or newer'],
    [
      'is no GPU where the bus has only its sound device',
      fakeMachine({ ...onBus, '/sys/bus/pci/devices/0/class': '0x040300\n' }),
      'no NVIDIA GPU was found',
    ],
    ['is the container where only the module is here', fakeMachine(withModule), '--gpus all'],
    ['is the platform on a Mac', fakeMachine({}, { platform: 'darwin' }), 'Linux and Windows on x64 only'],
    ['is the architecture on ARM', fakeMachine({}, { architecture: 'arm64' }), 'linux on arm64'],
  ])('%s', (_, machine, reason) => {
    expect(staticReason(machine)).toContain(reason);
  });
});

describe('a list of CUDA devices', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'trivec-smi-'));
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  /** This machine with a tool of that content, and without anything that a real GPU would bring. */
  const machineWith = (script: string, files: Record<string, string> = {}, variables = {}): Machine => {
    const tool = join(directory, 'nvidia-smi');
    writeFileSync(tool, `#!/bin/sh\n${script}\n`);
    chmodSync(tool, 0o755);
    const real = thisMachine({});
    const machine = fakeMachine(files, { variables: { PATH: `${directory}:/usr/bin:/bin`, ...variables } });
    return { ...machine, exists: (path) => machine.exists(path) || (path === tool && real.exists(path)) };
  };
  const reasonOf = async (machine: Machine): Promise<string> => {
    const list = await listCuda(machine);
    return 'absence' in list ? list.absence.reason : 'none';
  };

  it('holds what the tool says, in its order', async () => {
    const list = await listCuda(machineWith(`cat <<'END'\n${smiText}END`));
    expect('candidates' in list && list.candidates.map(({ id, name }) => [id, name])).toEqual([
      ['cuda:0', 'NVIDIA H200'],
      ['cuda:1', 'NVIDIA GB10, odd'],
    ]);
  });

  it('counts the GPUs that CUDA shows', async () => {
    const list = await listCuda(machineWith(`cat <<'END'\n${smiText}END`, {}, { CUDA_VISIBLE_DEVICES: '1' }));
    expect('candidates' in list && list.candidates.map(({ id, name }) => [id, name])).toEqual([
      ['cuda:0', 'NVIDIA GB10, odd'],
    ]);
    const hidden = machineWith(`cat <<'END'\n${smiText}END`, {}, { CUDA_VISIBLE_DEVICES: '' });
    expect(await reasonOf(hidden)).toContain('CUDA_VISIBLE_DEVICES hides every GPU');
  });

  it('asks the tool for nothing but its fields', async () => {
    await listCuda(machineWith(`echo "$@" > '${directory}/asked'`));
    expect(readFileSync(join(directory, 'asked'), 'utf8')).toBe(
      '--query-gpu=uuid,pci.bus_id,memory.total,driver_version,compute_cap,name --format=csv,noheader,nounits\n',
    );
  });

  it('is what the kernel module says where the tool fails', async () => {
    const list = await listCuda(machineWith('exit 9', { ...withModule, '/dev/nvidia0': '' }));
    expect('candidates' in list && list.candidates.map(({ name }) => name)).toEqual(['NVIDIA L4']);
  });

  it.each([
    [
      'fails',
      'echo "NVIDIA-SMI has failed because it could not talk to the driver"; exit 9',
      /exit code 9 \(NVIDIA-SMI has failed/,
    ],
    ['crashes', 'kill -SEGV $$', /signal SIGSEGV/],
    ['prints without end', 'exec yes', /printed more than 65536 bytes/],
    ['lists nothing', 'true', /lists no GPU/],
  ])('is empty, with the reason, where the tool %s', async (_, script, reason) => {
    expect(await reasonOf(machineWith(script))).toMatch(reason);
  });

  it('is empty, and nothing stays behind, where the tool hangs', async () => {
    const machine = machineWith(`sleep 300 &\necho $! > '${directory}/pid'\nwait`);
    expect(await reasonOf(machine)).toContain('nvidia-smi gave no answer within 4000 ms');
    const pid = Number(readFileSync(join(directory, 'pid'), 'utf8'));
    await expect.poll(() => isRunning(pid)).toBe(false);
  });
});

/** A process that was killed and not yet reaped counts as ended. */
function isRunning(pid: number): boolean {
  const state = thisMachine({}).readText(`/proc/${pid}/stat`);
  return state !== null && !/\) Z /.test(state);
}
