/** Owns the software adapter on which WebGPU is tested: SwiftShader, as Debian's chromium brings it. */
import { existsSync } from 'node:fs';
import { requirement } from './require.ts';
import type { Requirement } from './require.ts';

const driverPath = '/usr/lib/chromium/vk_swiftshader_icd.json';
const loaderPath = '/usr/lib/x86_64-linux-gnu/libvulkan.so.1';

/** What a process needs in its environment to see the software adapter and no other. */
export const softwareAdapter: Readonly<Record<string, string>> = { VK_ICD_FILENAMES: driverPath };

/** Whether WebGPU can be tested here: `webgpu` in `TRIVEC_TEST_REQUIRE` demands it. */
export function webgpuRequirement(): Requirement {
  const missing = [driverPath, loaderPath].filter((path) => !existsSync(path));
  return requirement(
    'webgpu',
    missing.length === 0,
    `there is no ${missing.join(' and no ')} (Debian: chromium, libvulkan1)`,
  );
}

/**
 * How far a value may be from the CPU's.
 * @source the accuracy of WGSL's functions: `exp` and `tanh` may be off by some units in the last place
 */
export const webgpuTolerance = 1e-4;
