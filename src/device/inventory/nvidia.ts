/** Owns what NVIDIA's tool and kernel module say of the GPUs, as texts that are read. */
import type { Candidate } from './candidate.ts';
import type { Machine } from './machine.ts';

/** One GPU as the driver knows it. */
export interface NvidiaGpu {
  readonly name: string;
  readonly uuid: string | null;
  readonly busId: string | null;
  /** @unit bytes */
  readonly memoryBytes: number | null;
  readonly driverVersion: string | null;
  readonly computeCapability: string | null;
}

const fields = ['uuid', 'pci.bus_id', 'memory.total', 'driver_version', 'compute_cap', 'name'] as const;
/** What `nvidia-smi` is asked for; its rows are in the order of the PCI bus. */
export const smiArguments = [`--query-gpu=${fields.join(',')}`, '--format=csv,noheader,nounits'];
/** More than any machine has; what a broken tool prints stays bounded. */
const maxGpus = 64;
const mebibyte = 1_048_576;

/** What a tool says may hold anything; on a terminal a control character is a command. */
const printable = (text: string): string => text.replaceAll(/\p{C}/gu, '?').slice(0, 100);

/** GPUs in the answer of `nvidia-smi`; lines that are none are left out. */
export function gpusInSmi(output: string): NvidiaGpu[] {
  return output
    .split('\n')
    .flatMap((line) => {
      const cells = line.split(',').map((cell) => cell.trim());
      const [uuid = '', busId = '', memory = '', driver = '', capability = ''] = cells;
      // The name comes last: it may hold a comma.
      const name = cells.slice(fields.length - 1).join(', ');
      if (!uuid.startsWith('GPU-') || name === '') return [];
      return {
        name: printable(name),
        uuid,
        busId: /^[\da-f]+:[\da-f:.]+$/i.test(busId) ? busId : null,
        memoryBytes: /^\d+$/.test(memory) ? Number(memory) * mebibyte : null,
        driverVersion: /^\d+(\.\d+)+$/.test(driver) ? driver : null,
        computeCapability: /^\d+\.\d+$/.test(capability) ? capability : null,
      };
    })
    .slice(0, maxGpus);
}

const moduleDirectory = '/proc/driver/nvidia';

/** Version of the loaded kernel module, or null where none is loaded. */
export function kernelDriverVersion({ readText }: Pick<Machine, 'readText'>): string | null {
  const line = /^NVRM version:.*$/m.exec(readText(`${moduleDirectory}/version`) ?? '')?.[0] ?? '';
  return /\s(\d{3,}\.\d+(?:\.\d+)?)\s/.exec(`${line} `)?.[1] ?? null;
}

/** GPUs that the kernel module knows and whose device file is here, in the order of the PCI bus. */
export function gpusInProc(machine: Pick<Machine, 'readText' | 'list' | 'exists'>): NvidiaGpu[] {
  const driverVersion = kernelDriverVersion(machine);
  return machine
    .list(`${moduleDirectory}/gpus`)
    .slice(0, maxGpus)
    .flatMap((busId) => {
      const text = machine.readText(`${moduleDirectory}/gpus/${busId}/information`) ?? '';
      const valueOf = (key: string): string | null =>
        new RegExp(`^${key}:[ \\t]*(\\S.*?)[ \\t]*$`, 'm').exec(text)?.[1] ?? null;
      const minor = valueOf('Device Minor');
      if (minor === null || !machine.exists(`/dev/nvidia${minor}`)) return [];
      const uuid = valueOf('GPU UUID');
      return {
        name: valueOf('Model') ?? 'NVIDIA GPU',
        uuid: uuid?.startsWith('GPU-') === true && !uuid.includes('?') ? uuid : null,
        busId,
        memoryBytes: null,
        driverVersion,
        computeCapability: null,
      };
    });
}

/**
 * The GPUs that CUDA shows, in its order: `CUDA_VISIBLE_DEVICES` names them by number or identifier and ends at the
 * first name that is none.
 * @source the CUDA programming guide, environment variables
 */
export function visibleGpus(gpus: readonly NvidiaGpu[], wanted: string | undefined): NvidiaGpu[] {
  if (wanted === undefined) return [...gpus];
  const visible: NvidiaGpu[] = [];
  for (const name of wanted.split(',').map((part) => part.trim())) {
    const gpu = gpuNamed(gpus, name);
    if (gpu === undefined || visible.includes(gpu)) break;
    visible.push(gpu);
  }
  return visible;
}

function gpuNamed(gpus: readonly NvidiaGpu[], name: string): NvidiaGpu | undefined {
  if (/^\d+$/.test(name)) return gpus[Number(name)];
  if (name.startsWith('GPU-')) return gpus.find(({ uuid }) => uuid?.startsWith(name) === true);
  if (!name.startsWith('MIG-')) return undefined;
  // A part of a GPU; the tool tells nothing of it here.
  const driverVersion = gpus[0]?.driverVersion ?? null;
  return { name: 'NVIDIA MIG', uuid: name, busId: null, memoryBytes: null, driverVersion, computeCapability: null };
}

/** The GPU as a device of the CUDA provider. */
export function cudaCandidate({ name, ...details }: NvidiaGpu, index: number): Candidate<'cuda'> {
  return { id: `cuda:${index}`, provider: 'cuda', index, name, details };
}
