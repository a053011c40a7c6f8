/** Owns the list of CUDA devices, and why there is none. */
import { askSmi, smi } from './ask-smi.ts';
import type { Absence, Candidate } from './candidate.ts';
import { isOnPath } from './machine.ts';
import type { Machine } from './machine.ts';
import { cudaCandidate, gpusInProc, gpusInSmi, kernelDriverVersion, smiArguments, visibleGpus } from './nvidia.ts';
import type { NvidiaGpu } from './nvidia.ts';
import type { ToolOutcome } from './run-bounded.ts';

/** Waking a row of idle GPUs takes the tool a few seconds. @unit ms */
const smiTimeoutMs = 4000;
/** Oldest driver that CUDA 13, which the provider is built for, works with. */
export const minDriverVersion = 580;
const nvidiaVendor = '0x10de';
/** PCI class of displays and 3D controllers. */
const displayClass = '0x03';

/** CUDA devices, or the one reason why there are none. */
export type CudaList = { readonly candidates: readonly Candidate<'cuda'>[] } | { readonly absence: Absence };

/** The CUDA devices of this machine; starts nothing where nothing points to one. */
export async function listCuda(machine: Machine): Promise<CudaList> {
  const reason = staticReason(machine);
  if (reason !== null) return absent(reason);
  const outcome = isOnPath(machine, smi) ? await askSmi(machine, smiArguments, smiTimeoutMs) : null;
  const gpus = chooseSource(outcome, gpusInProc(machine));
  if (gpus.length === 0) return absent(unseenReason(machine, outcome));
  const visible = visibleGpus(gpus, machine.variables['CUDA_VISIBLE_DEVICES']);
  if (visible.length === 0) return absent('CUDA_VISIBLE_DEVICES hides every GPU: unset it, or name one that exists');
  return { candidates: visible.map(cudaCandidate) };
}

const absent = (reason: string): CudaList => ({ absence: { provider: 'cuda', reason } });

/** The tool knows more; the kernel module is asked where the tool is missing or fails. */
function chooseSource(outcome: ToolOutcome | null, fromProc: NvidiaGpu[]): NvidiaGpu[] {
  const fromSmi = outcome !== null && 'output' in outcome ? gpusInSmi(outcome.output) : [];
  return fromSmi.length > 0 ? fromSmi : fromProc;
}

/** Whether a file of the driver is here: a GPU's own, or the one that WSL has instead. */
const hasDeviceFile = (machine: Machine): boolean =>
  machine.exists('/dev/dxg') || machine.list('/dev').some((name) => /^nvidia\d+$/.test(name));

/** Why there is no CUDA device, where that shows without starting anything; else null. */
export function staticReason(machine: Machine): string | null {
  const { platform, architecture } = machine;
  if (!['linux', 'win32'].includes(platform) || architecture !== 'x64') {
    return `the CUDA provider exists for Linux and Windows on x64 only, and this is ${platform} on ${architecture}`;
  }
  if (hasDeviceFile(machine) || isOnPath(machine, smi)) return null;
  if (kernelDriverVersion(machine) !== null) {
    return (
      'the NVIDIA driver is loaded but no /dev/nvidia* is here: ' +
      'start the container with --gpus all (needs the NVIDIA Container Toolkit on the host)'
    );
  }
  if (hasNvidiaOnBus(machine)) {
    return `an NVIDIA GPU is on the PCI bus but no driver is loaded: install the NVIDIA driver, ${minDriverVersion} or newer`;
  }
  return 'no NVIDIA GPU was found: there is no /dev/nvidia0 and no nvidia-smi';
}

function hasNvidiaOnBus(machine: Machine): boolean {
  const bus = '/sys/bus/pci/devices';
  return machine
    .list(bus)
    .some(
      (slot) =>
        machine.readText(`${bus}/${slot}/vendor`)?.trim() === nvidiaVendor &&
        machine.readText(`${bus}/${slot}/class`)?.startsWith(displayClass) === true,
    );
}

function unseenReason(machine: Machine, outcome: ToolOutcome | null): string {
  if (outcome !== null && 'problem' in outcome) {
    return `${outcome.problem}: reinstall or reload the NVIDIA driver, ${minDriverVersion} or newer`;
  }
  if (outcome !== null) return 'nvidia-smi lists no GPU: make one visible to this machine or container';
  return machine.exists('/dev/dxg')
    ? 'nvidia-smi is not on the PATH: add /usr/lib/wsl/lib to it'
    : 'neither nvidia-smi nor /proc/driver/nvidia tells of a GPU: reload the NVIDIA driver';
}
