/** Owns the list of WebGPU adapters, and why there is none. */
import { factsOfLibraries } from './adapter.ts';
import type { Absence, Candidate } from './candidate.ts';
import type { Machine } from './machine.ts';
import { vulkanDrivers } from './vulkan.ts';

/** The WebGPU adapter, or the one reason why there is none. */
export type WebgpuList = { readonly candidates: readonly Candidate<'webgpu'>[] } | { readonly absence: Absence };

/** Builds of the engine that hold WebGPU, and what they use of the system. */
const backends: Readonly<Record<string, string>> = {
  'linux-x64': 'Vulkan',
  'win32-x64': 'D3D12',
  'win32-arm64': 'D3D12',
  'darwin-arm64': 'Metal',
};

/** The one adapter that the engine would choose; it lets nobody choose another. */
export function listWebgpu(machine: Machine): WebgpuList {
  const { platform, architecture } = machine;
  const backend = backends[`${platform}-${architecture}`];
  if (backend === undefined) {
    return absent(`onnxruntime-node has no WebGPU for ${platform} on ${architecture}: use the CPU`);
  }
  const { drivers, reason } = backend === 'Vulkan' ? vulkanDrivers(machine) : { drivers: [], reason: null };
  if (reason !== null) return absent(reason);
  const libraries = drivers.map(({ library }) => library);
  const { name, vendor, isSoftware } = factsOfLibraries(libraries);
  const renderNodes = machine.list('/dev/dri').filter((node) => node.startsWith('renderD'));
  return {
    candidates: [
      {
        id: 'webgpu:0',
        provider: 'webgpu',
        index: 0,
        name: name ?? `${backend} adapter`,
        details: { vendor, isSoftware, drivers: libraries, renderNodes, limits: null },
      },
    ],
  };
}

const absent = (reason: string): WebgpuList => ({ absence: { provider: 'webgpu', reason } });
