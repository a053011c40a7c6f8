/** Owns the rules of the command `trivec devices install-cuda`, run as people run it. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { unpackEntry } from '../../../src/cuda/unpack.ts';
import { cudaWheels } from '../../../src/cuda/wheels.ts';
import { maxStreamingBytes, streamedBytes } from '../../support/streamed-memory.ts';
import { zipOf } from '../../support/zip.ts';
import { withCuda } from './rig.ts';
import type { CudaRig } from './rig.ts';

const dist = fileURLToPath(new URL('../../../dist/', import.meta.url));

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function node(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const env = { PATH: process.env['PATH'], ...environment };
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

const installCuda = (rig: CudaRig, args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  node([join(dist, 'main.js'), 'devices', 'install-cuda', '--cache-dir', rig.cacheDir, ...args], {
    PIP_INDEX_URL: rig.index.url,
    ...environment,
  });

const isSupported = process.platform === 'linux' && process.arch === 'x64';

describe.runIf(isSupported)('trivec devices install-cuda', () => {
  it.each([
    ['--offline', ['--offline'], {}],
    ['TRIVEC_OFFLINE', [], { TRIVEC_OFFLINE: 'true' }],
    ['HF_HUB_OFFLINE', [], { HF_HUB_OFFLINE: '1' }],
  ])('%s opens no connection, writes nothing, and says which files --from would need', async (_, args, environment) => {
    await withCuda({}, async (rig) => {
      const { code, out, err } = await installCuda(rig, args, environment);
      expect([code, out]).toEqual([2, '']);
      for (const { file } of cudaWheels) expect(err).toContain(file);
      expect(rig.index.requests).toEqual([]);
      expect(await readdir(rig.folder)).toEqual([]);
    });
  });

  it('--from an empty folder names every wheel that is missing, a line each', async () => {
    await withCuda({}, async (rig) => {
      const from = join(rig.folder, 'wheels');
      await mkdir(from);
      const { code, err } = await installCuda(rig, ['--from', from, '--offline']);
      expect(code).toBe(2);
      expect(err.trim().split('\n')).toEqual(
        cudaWheels.map(({ file }) => expect.stringContaining(`trivec: ${join(from, file)}: is not there`) as string),
      );
    });
  });

  it('asks the index that PIP_INDEX_URL names, and ends with one problem where it lacks a wheel', async () => {
    await withCuda({}, async (rig) => {
      const { code, err } = await installCuda(rig, []);
      expect(code).toBe(2);
      expect(err).toMatch(/^trivec: onnxruntime_gpu-\S+: .*\/simple\/onnxruntime-gpu\/ answers 404/u);
      expect(rig.index.requests.map(({ target }) => target)).toEqual(['/simple/onnxruntime-gpu/']);
    });
  });

  it('says a wrong index without its password', async () => {
    await withCuda({}, async (rig) => {
      const { code, err } = await installCuda(rig, [], { PIP_INDEX_URL: 'ftp://me:hidden@x' });
      expect([code, err]).toEqual([2, 'trivec: PIP_INDEX_URL: must be an http:// or https:// address\n']);
    });
  });
});

describe('taking a file out of a wheel', () => {
  it('of 300 MB takes a third of that in memory, half of it with a newer Node', async () => {
    await withCuda({}, async ({ folder }) => {
      const content = Buffer.alloc(streamedBytes);
      const [wheelPath, path] = [join(folder, 'large.whl'), join(folder, 'large.so')];
      await writeFile(wheelPath, zipOf([{ path: 'large.so', content }]));
      const sha256 = createHash('sha256').update(content).digest('hex');
      const entry = { path: 'large.so', name: 'large.so', sizeBytes: content.byteLength, sha256 };
      const script = `
        import { unpackEntry } from ${JSON.stringify(join(dist, 'cuda/unpack.js'))};
        await unpackEntry(${JSON.stringify(wheelPath)}, ${JSON.stringify(entry)}, ${JSON.stringify(path)}, () => {});
        process.stdout.write(String(process.resourceUsage().maxRSS));`;
      const { out, err } = await node(['--input-type=module', '-e', script]);
      expect(err).toBe('');
      expect((await stat(path)).size).toBe(content.byteLength);
      expect(Number(out) * 1024).toBeLessThan(maxStreamingBytes);
    });
  });

  it.skipIf(process.platform !== 'linux')('onto a full disk fails with what the system said', async () => {
    await withCuda({}, async ({ folder }) => {
      const content = Buffer.alloc(1_000_000);
      const [wheelPath, path] = [join(folder, 'small.whl'), join(folder, 'small.so')];
      await writeFile(wheelPath, zipOf([{ path: 'small.so', content }]));
      await symlink('/dev/full', `${path}.incomplete`);
      const sha256 = createHash('sha256').update(content).digest('hex');
      const entry = { path: 'small.so', name: 'small.so', sizeBytes: content.byteLength, sha256 };
      await expect(unpackEntry(wheelPath, entry, path, () => undefined)).rejects.toMatchObject({
        code: 'ENOSPC',
        syscall: 'write',
      });
    });
  });
});
