/** Owns the rules of finding CUDA's libraries, and of what a process needs to load them. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { cudaLibraryEnvironment } from '../../../src/cuda/library-environment.ts';
import { cudaWheels, engineVersion, setNameOf } from '../../../src/cuda/wheels.ts';
import { wheels, withCuda } from './rig.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const engineDir = join(root, 'node_modules/onnxruntime-node');
const binaries = join(engineDir, 'bin/napi-v6', process.platform, process.arch);

describe('the table of wheels', () => {
  it('belongs to the engine that is installed', async () => {
    const { version } = createRequire(import.meta.url)(join(engineDir, 'package.json')) as { version: string };
    expect(engineVersion).toBe(version);
    const binding = await readFile(join(binaries, 'onnxruntime_binding.node'), 'latin1').catch(() => null);
    if (binding !== null) expect(binding).toContain(`VERS_${engineVersion}`);
  });

  it('pins every file by a hash of its own, under names that lead nowhere else', () => {
    const entries = cudaWheels.flatMap((wheel) => wheel.entries);
    for (const { sha256 } of [...cudaWheels, ...entries]) expect(sha256).toMatch(/^[0-9a-f]{64}$/u);
    expect(new Set(entries.map(({ sha256 }) => sha256)).size).toBe(entries.length);
    for (const { name } of entries) expect(name).toMatch(/^[\w.-]+$/u);
    for (const { file, version } of cudaWheels)
      expect(file).toMatch(new RegExp(`^\\w+-${version}-[\\w.-]+\\.whl$`, 'u'));
  });

  it('has another folder for other files, whatever the order', () => {
    const [first, ...others] = cudaWheels;
    expect(setNameOf([...others, ...(first === undefined ? [] : [first])])).toBe(setNameOf(cudaWheels));
    expect(setNameOf(others)).not.toBe(setNameOf(cudaWheels));
  });
});

describe('the environment of a process that runs on CUDA', () => {
  it('is none before the installation, and none where a file is missing or short', async () => {
    await withCuda({}, async (rig) => {
      const find = () => cudaLibraryEnvironment(rig.cacheDir, '', wheels);
      expect(find()).toBeNull();
      await rig.install();
      expect(find()).toEqual({ folder: rig.setFolder, env: { LD_LIBRARY_PATH: rig.setFolder } });
      await truncate(join(rig.setFolder, 'libblas.so.13'), 5);
      expect(find()).toBeNull();
      await rm(join(rig.setFolder, 'libblas.so.13'));
      expect(find()).toBeNull();
    });
  });

  it('is none where the cache directory is a file', () => {
    expect(cudaLibraryEnvironment(join(root, 'package.json'), '', wheels)).toBeNull();
  });

  it('is found beside the program, as in the image, where the cache has none', async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'trivec-program-')));
    try {
      const set = join(folder, 'app/cuda', setNameOf(cudaWheels));
      await mkdir(set, { recursive: true });
      await cp(join(root, 'package.json'), join(folder, 'app/package.json'));
      for (const name of ['library-environment.js', 'wheels.js']) {
        await cp(join(root, 'dist/cuda', name), join(folder, 'app/dist/cuda', name));
      }
      const program = pathToFileURL(join(folder, 'app/dist/cuda/library-environment.js')).href;
      const { cudaLibraryEnvironment: find } = (await import(program)) as {
        cudaLibraryEnvironment: typeof cudaLibraryEnvironment;
      };
      expect(find(join(folder, 'cache'))).toBeNull();
      for (const { name, sizeBytes } of cudaWheels.flatMap(({ entries }) => entries)) {
        await writeFile(join(set, name), '');
        // Takes no room on the disk.
        await truncate(join(set, name), sizeBytes);
      }
      expect(find(join(folder, 'cache'))?.folder).toBe(set);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('keeps the library path of the operator behind the own one, without the current directory', async () => {
    await withCuda({}, async (rig) => {
      await rig.install();
      const path = cudaLibraryEnvironment(rig.cacheDir, ':/opt/driver::/lib2:', wheels)?.env.LD_LIBRARY_PATH;
      expect(path).toBe(`${rig.setFolder}:/opt/driver:/lib2`);
    });
  });

  it.runIf(process.platform === 'linux')(
    'makes the addon load the engine of that folder, which looks for its providers there',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'trivec-engine-'));
      try {
        const set = join(folder, 'set');
        await mkdir(set);
        await symlink(join(binaries, 'libonnxruntime.so.1'), join(set, 'libonnxruntime.so.1'));
        const script = `
          const { InferenceSession } = require(${JSON.stringify(engineDir)});
          InferenceSession.create('none.onnx', { executionProviders: ['cuda'] }).catch(() => {
            process.stdout.write(require('node:fs').readFileSync('/proc/self/maps', 'utf8'));
          });`;
        const env = { LD_LIBRARY_PATH: set, ORT_DISABLE_TELEMETRY: '1' };
        const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', script], { env });
        expect(stdout).toContain(`${dirname(binaries)}/${process.arch}/onnxruntime_binding.node`);
        expect(stderr).toContain(`Failed to load library ${set}/libonnxruntime_providers_shared.so`);
        expect(existsSync(join(binaries, 'libonnxruntime_providers_shared.so'))).toBe(false);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  );
});
