/** Owns the words for what goes wrong with a device: from the texts of engine, driver and loader to reason and fix. */
import type { GpuCandidate } from './candidate.ts';
import { minDriverVersion } from './list-cuda.ts';

/** A text that is known, and what it means on that device. */
interface KnownFailure {
  readonly pattern: RegExp;
  readonly provider?: GpuCandidate['provider'];
  readonly reason: (match: RegExpExecArray, candidate: GpuCandidate) => string;
}

const installCuda = 'run `trivec devices install-cuda`';
/** First architecture that CUDA 13 compiles for. */
const minComputeCapability = 7.5;
const updateDriver = `install the NVIDIA driver, ${minDriverVersion} or newer`;

function driverOf(candidate: GpuCandidate): string {
  const version = candidate.provider === 'cuda' ? candidate.details.driverVersion : null;
  return version === null ? 'the NVIDIA driver' : `the NVIDIA driver ${version}`;
}

function tooOld(candidate: GpuCandidate): string {
  const version = candidate.provider === 'cuda' ? candidate.details.driverVersion : null;
  if (Number.parseInt(version ?? '', 10) >= minDriverVersion) {
    return `the libraries of ${driverOf(candidate)} do not belong to it: install the driver anew, then restart the machine`;
  }
  return `${driverOf(candidate)} is too old for CUDA 13: update to ${minDriverVersion} or newer, then restart the machine`;
}

/** A GPU that the provider holds no code for: older than CUDA 13 knows, or of a kind that was left out. */
function noKernels(candidate: GpuCandidate): string {
  const capability = candidate.provider === 'cuda' ? candidate.details.computeCapability : null;
  if (capability === null || Number(capability) >= minComputeCapability) {
    return `the CUDA provider holds no code for its compute capability${capability === null ? '' : ` ${capability}`}: use --device webgpu or cpu`;
  }
  return `its compute capability ${capability} is too old: CUDA 13 needs ${minComputeCapability} (Turing) or newer`;
}

/** The first that matches counts: causes stand before what follows from them. */
const knownFailures: readonly KnownFailure[] = [
  {
    // A function of the driver itself: those of CUDA's libraries have a word before the capital.
    pattern: /undefined symbol: cu[A-Z]\w*/,
    provider: 'cuda',
    reason: (_, candidate) => tooOld(candidate),
  },
  {
    pattern: /Failed to find symbol|undefined symbol|version [`']VERS_[\w.]+' not found/,
    provider: 'cuda',
    reason: () => `the CUDA provider that is installed belongs to another version of the engine: ${installCuda} again`,
  },
  {
    pattern: /version [`']((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found/,
    reason: ([, version]) =>
      `this system has no ${version ?? 'suitable C library'}: use a distribution with glibc 2.28 or newer`,
  },
  {
    pattern: /Error loading shared library|Error relocating|ld-musl/,
    reason: () => 'the C library of this system is musl: use a distribution with glibc 2.28 or newer',
  },
  {
    pattern: /(libcuda\.so(?:\.\d+)*): cannot open shared object file/,
    reason: ([, library]) =>
      `${library ?? 'libcuda.so.1'} not found: ${updateDriver}; a container is started with --gpus all`,
  },
  {
    pattern:
      /(lib(?:cublas|cublasLt|cudart|curand|cufft|cudnn|nvrtc|nvJitLink|onnxruntime_providers)\w*\.so(?:\.\d+)*): cannot open shared object file/,
    reason: ([, library]) => `${library ?? 'a CUDA library'} not found: ${installCuda}`,
  },
  {
    pattern:
      /(lib[\w.+-]*\.so(?:\.\d+)*): (?:file too short|invalid ELF header|wrong ELF class|ELF load command|cannot read file data)/,
    reason: ([, library], { provider }) =>
      `${library ?? 'a library'} is broken: ${provider === 'cuda' && !/^lib(cuda|vulkan)\.so/.test(library ?? '') ? `${installCuda} again` : 'reinstall the package that it belongs to'}`,
  },
  {
    pattern: /Couldn't load Vulkan|(libvulkan\.so\.1): cannot open shared object file/,
    reason: () => 'libvulkan.so.1 not found: install the Vulkan loader (on Debian libvulkan1)',
  },
  {
    pattern: /(lib[\w.+-]*\.so(?:\.\d+)*): cannot open shared object file/,
    reason: ([, library]) => `${library ?? 'a library'} not found: install the package that holds it`,
  },
  {
    pattern: /CUDA driver version is insufficient|cudaErrorInsufficientDriver|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH/i,
    reason: (_, candidate) => tooOld(candidate),
  },
  {
    pattern: /no kernel image is available|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU/i,
    reason: (_, candidate) => noKernels(candidate),
  },
  {
    pattern: /no CUDA-capable device|invalid device ordinal|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE/i,
    reason: () =>
      'CUDA sees no such device: check CUDA_VISIBLE_DEVICES and `nvidia-smi`; a container is started with --gpus all',
  },
  {
    pattern: /busy or unavailable|cudaErrorDevicesUnavailable|exclusive/i,
    provider: 'cuda',
    reason: () => 'another process holds it for itself: end that process, or run `nvidia-smi --compute-mode=DEFAULT`',
  },
  {
    pattern: /out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|VK_ERROR_OUT_OF_DEVICE_MEMORY/i,
    reason: () => 'its memory is taken: end the other processes that use it',
  },
  {
    pattern: /system not yet initialized|cudaErrorSystemNotReady|fabric ?manager/i,
    reason: () => 'its NVLink fabric is not ready: start nvidia-fabricmanager in the version of the driver',
  },
  {
    pattern: /Cannot find (?:module|package) /,
    reason: () => 'files of this program are missing: install or build it again',
  },
  {
    pattern: /backend not found|not (?:built|compiled|supported|enabled|included) in this build/i,
    reason: (_, { provider }) =>
      `this build of onnxruntime-node has no ${provider === 'cuda' ? 'CUDA' : 'WebGPU'}: use the CPU`,
  },
  {
    pattern: /Found no drivers|VK_ERROR_INCOMPATIBLE_DRIVER|Failed to get a WebGPU adapter|No supported adapters/,
    reason: () =>
      'no Vulkan driver gives an adapter: install or update the driver of the GPU (on Debian mesa-vulkan-drivers), and let ' +
      'this user open /dev/dri/renderD*',
  },
  {
    pattern: /Failed to load shared library/,
    provider: 'cuda',
    reason: () => `the CUDA provider could not be loaded: ${installCuda}`,
  },
];

const maxReasonCharacters = 200;

/** What a known text in a log means on this device, in one sentence without its full stop; null where none is known. */
export function knownCause(candidate: GpuCandidate, log: string): string | null {
  for (const { pattern, provider, reason } of knownFailures) {
    if (provider !== undefined && provider !== candidate.provider) continue;
    const match = pattern.exec(log);
    if (match !== null) return reason(match, candidate);
  }
  return null;
}

/** What is to be done about a device that failed without a word that is known. */
export function likelyFix(candidate: GpuCandidate): string {
  if (candidate.provider === 'webgpu') return 'update its driver';
  const { driverVersion, computeCapability } = candidate.details;
  if (driverVersion !== null && Number.parseInt(driverVersion, 10) < minDriverVersion) return tooOld(candidate);
  if (computeCapability !== null && Number(computeCapability) < minComputeCapability) return noKernels(candidate);
  return `update its driver, or ${installCuda} again`;
}

/**
 * One sentence, without its full stop, on why this device cannot be used: what is missing and what brings it.
 * The log names causes that the error's message does not.
 */
export function explainFailure(candidate: GpuCandidate, message: string, log: string): string {
  const line = message.split('\n').find((text) => text.trim() !== '') ?? 'it gave no reason';
  return (
    knownCause(candidate, `${log}\n${message}`) ??
    `the engine refused it (${line.trim().slice(0, maxReasonCharacters)}): ${likelyFix(candidate)}`
  );
}
