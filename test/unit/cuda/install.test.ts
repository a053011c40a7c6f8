/** Owns the rules of an installation of CUDA's libraries. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freeBytesOf, neededBytes } from '../../../src/cuda/install.ts';
import { misbehave } from '../../support/fake-hub.ts';
import { pathsIn, refusalOf } from '../hub/rig.ts';
import { blasWheel, contents, engineWheel, withCuda } from './rig.ts';
import type { CudaRig } from './rig.ts';

const names = Object.keys(contents).sort();

async function expectComplete({ setFolder, cacheDir }: CudaRig): Promise<void> {
  expect(await pathsIn(setFolder)).toEqual(names);
  for (const [name, content] of Object.entries(contents)) {
    expect((await readFile(join(setFolder, name))).equals(content), name).toBe(true);
  }
  // Nothing else stays: no wheel, no lock, nothing incomplete.
  expect(await pathsIn(cacheDir)).toHaveLength(names.length);
}

describe('an installation', () => {
  it('leaves the wanted files of the wheels and nothing else', async () => {
    await withCuda({}, async (rig) => {
      expect(await rig.install()).toBe(rig.setFolder);
      await expectComplete(rig);
    });
  });

  it('that is complete asks nobody and writes nothing when it is repeated', async () => {
    await withCuda({}, async (rig) => {
      await rig.install();
      const asked = rig.index.requests.length;
      const { mtimeMs } = await stat(rig.setFolder);
      await rm(join(rig.cacheDir, 'cuda', 'install.lock'), { force: true });
      expect(await rig.install({ freeBytes: () => Promise.resolve(0) })).toBe(rig.setFolder);
      expect(rig.index.requests).toHaveLength(asked);
      expect((await stat(rig.setFolder)).mtimeMs).toBe(mtimeMs);
    });
  });

  it('goes on in a later process with what an earlier one left', async () => {
    await withCuda({ limits: { maxAttempts: 1 } }, async (rig) => {
      rig.index.next(blasWheel.file, misbehave.cut(100_000));
      expect(await refusalOf(rig.install())).toContain(blasWheel.file);
      expect(existsSync(rig.setFolder)).toBe(false);
      await rig.install();
      await expectComplete(rig);
      expect(rig.index.asked(engineWheel.file)).toHaveLength(1);
      expect(rig.index.asked(blasWheel.file).map(({ range }) => range)).toEqual([
        null,
        expect.stringMatching(/^bytes=[1-9]\d*-$/u),
      ]);
    });
  });

  it('a damaged file is found by its hash and got again, alone', async () => {
    await withCuda({}, async (rig) => {
      await rig.install();
      const path = join(rig.setFolder, 'libblas.so.13');
      const bytes = await readFile(path);
      bytes[1000] = (bytes[1000] ?? 0) ^ 1;
      await writeFile(path, bytes);
      await rig.install();
      await expectComplete(rig);
      expect(rig.index.asked(engineWheel.file)).toHaveLength(1);
      expect(rig.index.asked(blasWheel.file)).toHaveLength(2);
    });
  });

  it('a set that was damaged while another one is half made is made whole', async () => {
    await withCuda({}, async (rig) => {
      await rig.install();
      await truncate(join(rig.setFolder, 'libblas.so.13'), 10);
      await mkdir(`${rig.setFolder}.incomplete`);
      await writeFile(join(`${rig.setFolder}.incomplete`, 'libengine.so.1'), contents['libengine.so.1']);
      await rig.install();
      await expectComplete(rig);
    });
  });

  it('one process works while another waits, and then finds everything there', async () => {
    await withCuda({ limits: { maxLockWaitMs: Infinity, ownerDeadMs: Infinity } }, async (rig) => {
      expect(await Promise.all([rig.install(), rig.install()])).toEqual([rig.setFolder, rig.setFolder]);
      await expectComplete(rig);
      for (const { file } of [engineWheel, blasWheel]) expect(rig.index.asked(file)).toHaveLength(1);
      expect(rig.notes.filter((note) => note.startsWith('waiting for process'))).toHaveLength(1);
    });
  });

  it('a wheel whose content is not what its table says leaves no set', async () => {
    await withCuda({}, async (rig) => {
      const entries = engineWheel.entries.map((entry) => ({ ...entry, sha256: '0'.repeat(64) }));
      await expect(rig.install({ wheels: [{ ...engineWheel, entries }] })).rejects.toThrow('expected sha256 000');
      const tooShort = engineWheel.entries.map((entry) => ({ ...entry, sizeBytes: 10 }));
      await expect(rig.install({ wheels: [{ ...engineWheel, entries: tooShort }] })).rejects.toThrow('is longer than');
      const missing = engineWheel.entries.map((entry) => ({ ...entry, path: 'elsewhere' }));
      await expect(rig.install({ wheels: [{ ...engineWheel, entries: missing }] })).rejects.toThrow(
        'holds no elsewhere',
      );
      expect((await pathsIn(rig.cacheDir)).filter((path) => /^cuda\/[0-9a-f]+\//u.test(path))).toEqual([]);
    });
  });

  it('a folder that cannot be written is one problem that names it', async () => {
    await withCuda({}, async (rig) => {
      await writeFile(rig.cacheDir, 'a file, where a folder should be');
      expect(await refusalOf(rig.install())).toMatch(/cache: cannot be written \((ENOTDIR|EEXIST)\); .*--cache-dir/u);
    });
  });
});

describe('disk space', () => {
  it('that is too little is told before anything is downloaded, with what is needed', async () => {
    await withCuda({}, async (rig) => {
      const refusal = await refusalOf(rig.install({ freeBytes: () => Promise.resolve(1_000_000) }));
      expect(refusal).toMatch(/cache: 67\.\d MB are needed and 1\.0 MB are free: make room/u);
      expect(rig.index.requests).toEqual([]);
    });
  });

  it('is needed for what is unpacked and the one wheel that is here, not for all wheels at once', () => {
    const steps = [
      { wheelBytes: 100, entryBytes: 150 },
      { wheelBytes: 10, entryBytes: 20 },
    ];
    expect(neededBytes(steps)).toBe(250);
    expect(neededBytes(steps.toReversed())).toBe(270);
    expect(neededBytes([])).toBe(0);
  });

  it('is what the file system says', async () => {
    expect(await freeBytesOf('/')).toBeGreaterThan(0);
  });
});

describe('--from', () => {
  it('takes the wheels from a folder, asks no index, and leaves the folder as it is', async () => {
    await withCuda({}, async (rig) => {
      const from = await rig.layWheels();
      expect(await rig.installFrom(from)).toBe(rig.setFolder);
      await expectComplete(rig);
      expect(rig.index.requests).toEqual([]);
      expect(await pathsIn(from)).toEqual([blasWheel.file, engineWheel.file].sort());
    });
  });

  it('names every wheel that is missing or of another size, with its project', async () => {
    await withCuda({}, async (rig) => {
      const from = await rig.layWheels([blasWheel]);
      await truncate(join(from, blasWheel.file), 99);
      const problems = (await refusalOf(rig.installFrom(from))).split('\n');
      expect(problems).toEqual([
        expect.stringContaining(`${engineWheel.file}: is not there; it is a file of the project engine 1.0`),
        expect.stringContaining(`${blasWheel.file}: has 99 bytes where ${String(blasWheel.sizeBytes)} are expected`),
      ]);
    });
  });

  it('refuses a wheel with other bytes', async () => {
    await withCuda({}, async (rig) => {
      const from = await rig.layWheels();
      await writeFile(join(from, blasWheel.file), Buffer.alloc(blasWheel.sizeBytes));
      expect(await refusalOf(rig.installFrom(from))).toContain(`expected sha256 ${blasWheel.sha256}, found`);
      expect(existsSync(rig.setFolder)).toBe(false);
    });
  });

  it('needs only the wheels of files that are not there yet', async () => {
    await withCuda({ limits: { maxAttempts: 1 } }, async (rig) => {
      rig.index.next(blasWheel.file, misbehave.status(500));
      await refusalOf(rig.install());
      await rig.installFrom(await rig.layWheels([blasWheel]));
      expect(existsSync(join(rig.setFolder, 'libengine.so.1'))).toBe(true);
    });
  });
});
