/** Owns where CUDA's libraries are, and how a process is started so that it loads them. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cudaWheels, setNameOf } from './wheels.ts';
import type { Wheel } from './wheels.ts';

/** A complete set of libraries, and what a process that uses them needs. */
export interface CudaLibraries {
  readonly folder: string;
  /** Must be there when the process starts: the dynamic loader reads it once. */
  readonly env: { readonly LD_LIBRARY_PATH: string };
}

/** Folder of the set below a cache directory. */
export const setFolderOf = (cacheDir: string, wheels: readonly Wheel[]): string =>
  join(cacheDir, 'cuda', setNameOf(wheels));

/** The program's own folder, which takes the place of a cache directory in the image. */
const programDir = fileURLToPath(new URL('../..', import.meta.url));

/** Size of a file; null where there is none, for whatever reason. @unit bytes */
function sizeOf(path: string): number | null {
  try {
    return statSync(path).size;
  } catch {
    return null;
  }
}

function hasAllFiles(folder: string, wheels: readonly Wheel[]): boolean {
  return wheels
    .flatMap(({ entries }) => entries)
    .every(({ name, sizeBytes }) => sizeOf(join(folder, name)) === sizeBytes);
}

/**
 * Where CUDA's libraries are, in the cache or beside the program (as in the image); null where they were not installed.
 *
 * A process that is started with `env` and imports onnxruntime-node can create sessions on the provider `cuda`; a
 * missing driver is then the only thing that the engine names (`libcuda.so.1: cannot open shared object file`).
 *
 * How it works. The addon `onnxruntime_binding.node` needs `libonnxruntime.so.1` and names its own folder in a RUNPATH,
 * which the dynamic loader searches after `LD_LIBRARY_PATH`: so the engine of the set is loaded, which is the same
 * version, built together with the provider. The engine looks for `libonnxruntime_providers_*.so` in the folder that it
 * was itself loaded from; what those need in turn (cublas, curand, cudart), and what cublasLt opens later (nvrtc),
 * comes from `LD_LIBRARY_PATH` again. Nothing is written to or linked into node_modules. The engine of the set has the
 * CPU and the CUDA provider and no WebGPU, so only processes that run on CUDA should be given `env`.
 *
 * Looks at the names and sizes of the files only; `installCuda` proves what they hold.
 * @param cacheDir the directory that `devices install-cuda` was given
 * @param inheritedPath the `LD_LIBRARY_PATH` of this process: where an operator says that the driver is
 * @param wheels what a complete set is made of
 */
export function cudaLibraryEnvironment(
  cacheDir: string,
  inheritedPath = '',
  wheels: readonly Wheel[] = cudaWheels,
): CudaLibraries | null {
  const folder = [cacheDir, programDir].map((dir) => setFolderOf(dir, wheels)).find((dir) => hasAllFiles(dir, wheels));
  if (folder === undefined) return null;
  // An empty part would be the current directory.
  const inherited = inheritedPath.split(':').filter((part) => part !== '');
  return { folder, env: { LD_LIBRARY_PATH: [folder, ...inherited].join(':') } };
}
