/** Owns what a device that may be used is, what is known of it, and what its probe said. */
import type { ProviderName } from '../../executor/protocol.ts';

/** What is known of the CPU. */
export interface CpuDetails {
  /** Cores that the process may use, by affinity and control group. */
  readonly cores: number;
  /** Such as x64 or arm64. */
  readonly architecture: string;
  /** Those of the vector features that matter to matrix products, as the kernel spells them. */
  readonly vectorFeatures: readonly string[];
  /** Memory of the machine. @unit bytes */
  readonly memoryBytes: number;
  /** What the control group allows of it; null where it says nothing. @unit bytes */
  readonly memoryLimitBytes: number | null;
}

/** What is known of a WebGPU adapter; null is what the engine and the system do not tell. */
export interface WebgpuDetails {
  readonly vendor: string | null;
  /** Whether the CPU does its work. */
  readonly isSoftware: boolean | null;
  /** Driver libraries that the Vulkan loader may take. */
  readonly drivers: readonly string[];
  /** Graphics devices of the kernel. */
  readonly renderNodes: readonly string[];
  /** The engine does not tell the limits of an adapter. */
  readonly limits: null;
}

/** What is known of a CUDA device. */
export interface CudaDetails {
  /** @unit bytes */
  readonly memoryBytes: number | null;
  readonly driverVersion: string | null;
  /** Such as 9.0. */
  readonly computeCapability: string | null;
  readonly uuid: string | null;
  readonly busId: string | null;
}

interface DetailsOf {
  readonly cpu: CpuDetails;
  readonly webgpu: WebgpuDetails;
  readonly cuda: CudaDetails;
}

/** A device of one provider. */
export interface Candidate<Provider extends ProviderName> {
  /** Such as cuda:1. */
  readonly id: `${Provider}:${number}`;
  readonly provider: Provider;
  /** Which of the provider's devices. */
  readonly index: number;
  readonly name: string;
  readonly details: DetailsOf[Provider];
}

/** A device that may be used. */
export type DeviceCandidate = Candidate<'cpu'> | Candidate<'webgpu'> | Candidate<'cuda'>;

/** A device that must be tried before it is believed. */
export type GpuCandidate = Exclude<DeviceCandidate, Candidate<'cpu'>>;

/** What a device that runs has shown. */
export interface UsableVerdict {
  readonly isUsable: true;
  /** Whether graphs in half precision run on it. */
  readonly hasFp16: boolean;
  /** Whether it only looks like a GPU and is the CPU; null where nothing tells. */
  readonly isSoftware: boolean | null;
  /** Its time for a small graph beside that of the CPU provider; null for the CPU itself. */
  readonly timing: { readonly rows: number; readonly runMs: number; readonly cpuRunMs: number } | null;
  /** Driver files that it had mapped. */
  readonly libraries: readonly string[];
}

/** What a probe came to; a reason is one sentence with the fix, without its full stop. */
export type ProbeVerdict = UsableVerdict | { readonly isUsable: false; readonly reason: string };

/** A device with what its probe said; what the probe learnt of it is in the candidate. */
export interface ProbeResult {
  readonly candidate: DeviceCandidate;
  readonly verdict: ProbeVerdict;
}

/** Why a provider has no device here. */
export interface Absence {
  readonly provider: ProviderName;
  readonly reason: string;
}

/** What was found of each provider. */
export interface Inventory {
  readonly results: readonly ProbeResult[];
  readonly absences: readonly Absence[];
}
