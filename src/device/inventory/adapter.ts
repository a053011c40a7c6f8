/** Owns what a WebGPU adapter is called, whose it is, and whether it is software. */
import { basename } from 'node:path';

/** What is known of an adapter. */
export interface AdapterFacts {
  readonly name: string | null;
  readonly vendor: string | null;
  readonly isSoftware: boolean | null;
}

/** Libraries of Vulkan drivers, by the start of their names. */
const driverLibraries: readonly { start: string; name: string; vendor: string; isSoftware?: true }[] = [
  { start: 'libvk_swiftshader', name: 'SwiftShader', vendor: 'Google', isSoftware: true },
  { start: 'libvulkan_lvp', name: 'llvmpipe', vendor: 'Mesa', isSoftware: true },
  { start: 'libGLX_nvidia', name: 'NVIDIA GPU', vendor: 'NVIDIA' },
  { start: 'libnvidia-vulkan', name: 'NVIDIA GPU', vendor: 'NVIDIA' },
  { start: 'libEGL_nvidia', name: 'NVIDIA GPU', vendor: 'NVIDIA' },
  { start: 'libvulkan_nouveau', name: 'NVIDIA GPU', vendor: 'NVIDIA' },
  { start: 'libvulkan_radeon', name: 'AMD GPU', vendor: 'AMD' },
  { start: 'amdvlk', name: 'AMD GPU', vendor: 'AMD' },
  { start: 'libvulkan_intel', name: 'Intel GPU', vendor: 'Intel' },
  { start: 'libvulkan_virtio', name: 'virtual GPU', vendor: 'virtio' },
];
const softwareName = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|\bwarp\b/i;
const vendorNames: readonly [RegExp, string][] = [
  [/swiftshader/i, 'Google'],
  [/llvmpipe|lavapipe|softpipe/i, 'Mesa'],
  [/nvidia|geforce|quadro|tesla/i, 'NVIDIA'],
  [/\bamd\b|radeon|radv/i, 'AMD'],
  [/intel/i, 'Intel'],
  [/\bmali\b/i, 'ARM'],
  [/adreno/i, 'Qualcomm'],
  [/microsoft/i, 'Microsoft'],
];

const unknownAdapter: AdapterFacts = { name: null, vendor: null, isSoftware: null };

/** What a driver's library says of its adapters; nothing where it is not a known one. */
function factsOfLibrary(library: string): AdapterFacts {
  const known = driverLibraries.find(({ start }) => basename(library).startsWith(start));
  if (known === undefined) return unknownAdapter;
  return { name: known.name, vendor: known.vendor, isSoftware: known.isSoftware === true };
}

/** What the libraries say together: only where they agree is anything known. */
export function factsOfLibraries(libraries: readonly string[]): AdapterFacts {
  const all = libraries.map(factsOfLibrary);
  const agreed = <Value>(values: readonly Value[]): Value | null =>
    new Set(values).size === 1 ? (values[0] ?? null) : null;
  return {
    name: agreed(all.map(({ name }) => name)),
    vendor: agreed(all.map(({ vendor }) => vendor)),
    isSoftware: agreed(all.map(({ isSoftware }) => isSoftware)),
  };
}

/**
 * The adapter that was used, by the log of the Vulkan loader: it names the device that was opened and its driver, or
 * at least all that there are. Without that log, what the libraries say.
 */
export function factsOfAdapter(log: string, libraries: readonly string[]): AdapterFacts {
  const used = [...log.matchAll(/Using "([^"\n]{1,200})" with driver: "([^"\n]*)"/g)].at(-1);
  const listed = new Set([...log.matchAll(/\[\d+\] ([^\n[]{1,200}?)[ \t]*$/gm)].map((match) => match[1] ?? ''));
  const name = used?.[1] ?? (listed.size === 1 ? [...listed][0] : undefined);
  const byDriver = factsOfLibraries(used?.[2] === undefined ? libraries : [used[2]]);
  if (name === undefined) return byDriver;
  return {
    name,
    vendor: vendorNames.find(([pattern]) => pattern.test(name))?.[1] ?? byDriver.vendor,
    isSoftware: softwareName.test(name) || byDriver.isSoftware === true,
  };
}
