/** Owns what the tests of CUDA's libraries share: tiny wheels, an index that has them, and a fresh cache. */
import { createHash, randomFillSync } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { downloadFolderOf, installCuda } from '../../../src/cuda/install.ts';
import type { CudaInstallation } from '../../../src/cuda/install.ts';
import { folderSource, indexSource } from '../../../src/cuda/wheel-source.ts';
import { setFolderOf } from '../../../src/cuda/library-environment.ts';
import type { Wheel } from '../../../src/cuda/wheels.ts';
import type { HttpConnection } from '../../../src/model/hub/http-client.ts';
import { hubLimits } from '../../../src/model/hub/limits.ts';
import type { HubLimits } from '../../../src/model/hub/limits.ts';
import { silentProgress } from '../../../src/model/hub/progress.ts';
import { createFakeIndex } from '../../support/fake-index.ts';
import type { FakeIndex, IndexedFile } from '../../support/fake-index.ts';
import { zipOf } from '../../support/zip.ts';
import { createHastyClock } from '../hub/rig.ts';
import type { HastyClock } from '../hub/rig.ts';

const sha256Of = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** Bytes that do not shrink, so that a wheel has about the size of what it holds. */
const noise = (sizeBytes: number): Buffer => randomFillSync(Buffer.alloc(sizeBytes));

/** What the wheels hold, by the name that it is installed under. */
export const contents = {
  'libengine.so.1': Buffer.from('engine '.repeat(20_000)),
  'libprovider.so': noise(1000),
  'libblas.so.13': noise(300_000),
};

const engineZip = zipOf([
  { path: 'engine/__init__.py', content: Buffer.from('print("not wanted")') },
  { path: 'engine/libengine.so.1.2.3', content: contents['libengine.so.1'] },
  { path: 'engine/libprovider.so', content: contents['libprovider.so'], isStored: true },
]);
const blasZip = zipOf([{ path: 'nvidia/lib/libblas.so.13', content: contents['libblas.so.13'] }]);

const entryOf = (path: string, name: keyof typeof contents) => ({
  path,
  name,
  sizeBytes: contents[name].byteLength,
  sha256: sha256Of(contents[name]),
});
const wheelOf = (project: string, content: Buffer, entries: Wheel['entries']) => ({
  project,
  version: '1.0',
  file: `${project}-1.0+cu13-py3-none-any.whl`,
  sizeBytes: content.byteLength,
  sha256: sha256Of(content),
  entries,
});

/** A wheel of two wanted files and one that is not, and a wheel of one. */
export const engineWheel: Wheel = wheelOf('engine', engineZip, [
  entryOf('engine/libengine.so.1.2.3', 'libengine.so.1'),
  entryOf('engine/libprovider.so', 'libprovider.so'),
]);
export const blasWheel: Wheel = wheelOf('blas', blasZip, [entryOf('nvidia/lib/libblas.so.13', 'libblas.so.13')]);
export const wheels: readonly Wheel[] = [engineWheel, blasWheel];

const indexed = ({ project, file }: Wheel, content: Buffer): IndexedFile => ({ project, file, content });
const allFiles = [indexed(engineWheel, engineZip), indexed(blasWheel, blasZip)];

/** An index and a cache for one test. */
export interface CudaRig {
  readonly index: FakeIndex;
  readonly clock: HastyClock;
  readonly cacheDir: string;
  /** Where the set is when it is complete. */
  readonly setFolder: string;
  /** What a person was told. */
  readonly notes: readonly string[];
  /** A folder for anything else. */
  readonly folder: string;
  /** Installs from the index. */
  install(changes?: Partial<CudaInstallation>): Promise<string>;
  /** Installs from a folder. */
  installFrom(from: string, changes?: Partial<CudaInstallation>): Promise<string>;
  /** Lays the wheels into a folder, and gives its path. */
  layWheels(only?: readonly Wheel[]): Promise<string>;
}

/** What a test may want differently. */
export interface CudaRigOptions {
  readonly limits?: Partial<HubLimits>;
  readonly connection?: Partial<HttpConnection>;
}

/** Runs a test with a fresh rig, which is gone afterwards. */
export async function withCuda(options: CudaRigOptions, test: (rig: CudaRig) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-cuda-'));
  const index = await createFakeIndex();
  index.put(...allFiles);
  const limits = { ...hubLimits, ...options.limits };
  const clock = createHastyClock(limits);
  const notes: string[] = [];
  const cacheDir = join(folder, 'cache');
  const direct = { endpoint: index.url, authorization: null, httpProxy: null, httpsProxy: null, noProxy: '' };
  const pacing = { clock, random: () => 0.5, limits };
  const progress = { ...silentProgress, onNote: (message: string) => notes.push(message) };
  const base = { cacheDir, wheels, pacing, progress, freeBytes: () => Promise.resolve(1e12) };
  const rig: CudaRig = {
    index,
    clock,
    cacheDir,
    setFolder: setFolderOf(cacheDir, wheels),
    notes,
    folder,
    async install(changes) {
      const connection = { ...direct, ...options.connection };
      const source = indexSource(connection, downloadFolderOf(cacheDir), pacing, progress);
      return installCuda({ ...base, source, ...changes }).finally(() => {
        source.close();
      });
    },
    installFrom: (from, changes) => installCuda({ ...base, source: folderSource(from), ...changes }),
    async layWheels(only = wheels) {
      const from = join(folder, 'wheels');
      await mkdir(from, { recursive: true });
      for (const { file, content } of allFiles) {
        if (only.some((wheel) => wheel.file === file)) await writeFile(join(from, file), content);
      }
      return from;
    },
  };
  try {
    await test(rig);
  } finally {
    await index.close();
    await rm(folder, { recursive: true, force: true });
  }
}
