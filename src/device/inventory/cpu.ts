/** Owns the CPU as a device: its name, its cores, its vector features and the memory it may use. */
import { totalmem } from 'node:os';
import { cpuName, usableCores } from '../cpu.ts';
import type { Candidate, ProbeResult } from './candidate.ts';
import type { Machine } from './machine.ts';
import { memoryLimitBytes } from './memory-limit.ts';

/** Features that the engine's matrix products are written for, as x86 and ARM kernels spell them. */
const knownFeatures: ReadonlySet<string> = new Set([
  ...['avx', 'avx2', 'fma', 'f16c', 'avx_vnni', 'avx512f', 'avx512bw', 'avx512vl', 'avx512_vnni', 'avx512_bf16'],
  ...['avx512_fp16', 'amx_tile', 'amx_int8', 'amx_bf16'],
  ...['neon', 'asimd', 'asimdhp', 'fphp', 'asimddp', 'i8mm', 'bf16', 'sve', 'sve2', 'svei8mm', 'svebf16'],
]);

/** The vector features in a text like `/proc/cpuinfo`, of its first processor, in the order of the text. */
export function vectorFeaturesIn(cpuinfo: string): string[] {
  const line = /^(?:flags|Features)[ \t]*:[ \t]*(.*)$/m.exec(cpuinfo)?.[1] ?? '';
  return line.split(/\s+/).filter((feature) => knownFeatures.has(feature));
}

/** The CPU, which is always there. */
export function cpuCandidate(machine: Machine): Candidate<'cpu'> {
  return {
    id: 'cpu:0',
    provider: 'cpu',
    index: 0,
    name: cpuName(),
    details: {
      cores: usableCores(),
      architecture: machine.architecture,
      vectorFeatures: vectorFeaturesIn(machine.readText('/proc/cpuinfo') ?? ''),
      memoryBytes: totalmem(),
      memoryLimitBytes: memoryLimitBytes(machine),
    },
  };
}

/** The CPU needs no probe: whatever else fails, it is what everything else is measured against. */
export const cpuResult = (machine: Machine): ProbeResult => ({
  candidate: cpuCandidate(machine),
  verdict: { isUsable: true, hasFp16: true, isSoftware: false, timing: null, libraries: [] },
});
