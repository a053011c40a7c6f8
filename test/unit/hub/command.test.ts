/** Owns the rules of the commands `trivec models …`, run as people run them. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { fileOf, misbehave, zerosOf } from '../../support/fake-hub.ts';
import { maxStreamingBytes, streamedBytes } from '../../support/streamed-memory.ts';
import { withRig } from './rig.ts';
import type { HubRig } from './rig.ts';
import { converted } from '../convert/graphs.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const token = 'hf_NeverToBeSeen';

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command against the rig's hub and cache. */
function trivec(
  { fake, cacheDir }: HubRig,
  args: readonly string[],
  nodeFlags: readonly string[] = [],
): Promise<Outcome> {
  const env = { PATH: process.env['PATH'], HF_ENDPOINT: fake.url, HF_HUB_CACHE: cacheDir, HF_TOKEN: token };
  return new Promise((resolve) => {
    execFile(process.execPath, [...nodeFlags, entry, 'models', ...args], { env }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

/** Longest that a process's memory ever was. @unit MB */
const memoryFlag = `data:text/javascript,process.on('exit',()=>process.stderr.write('maxRSS='+process.resourceUsage().maxRSS))`;

describe('trivec models pull', () => {
  it('prints the folder on stdout and plain lines on stderr where there is no terminal', async () => {
    await withRig({}, async (rig) => {
      rig.fake.put(tinyId, await tinyRepository());
      const { code, out, err } = await trivec(rig, ['pull', tinyId]);
      expect(code).toBe(0);
      expect((await readFile(join(out.trim(), 'config.json'), 'utf8')).length).toBeGreaterThan(0);
      expect(err.split('\n').slice(0, 2)).toEqual(['config.json: getting 294 B', 'config.json: complete']);
    });
  });

  it('ends with code 2 and one problem, without the token in any output', async () => {
    await withRig({}, async (rig) => {
      rig.fake.put(tinyId, await tinyRepository());
      rig.fake.next(graphPath, misbehave.status(401), misbehave.status(403), misbehave.status(404));
      for (const status of [401, 403, 404]) {
        const { code, out, err } = await trivec(rig, ['pull', tinyId]);
        expect(code).toBe(2);
        expect(err).toMatch(new RegExp(`\ntrivec: onnx/model.onnx: .*${String(status)}`, 'u'));
        expect(out + err).not.toContain(token);
      }
    });
  });

  it('offline says where the model is, or that it is not there, and asks nobody', async () => {
    await withRig({}, async (rig) => {
      rig.fake.put(tinyId, await tinyRepository());
      expect(await trivec(rig, ['pull', tinyId, '--offline'])).toMatchObject({ code: 2, out: '' });
      expect(rig.fake.requests).toEqual([]);
      const { out } = await trivec(rig, ['pull', tinyId]);
      const asked = rig.fake.requests.length;
      expect(await trivec(rig, ['pull', tinyId, '--offline'])).toMatchObject({ code: 0, out });
      expect(rig.fake.requests).toHaveLength(asked);
    });
  });

  it('of 300 MB takes a third of that in memory, half of it with a newer Node', async () => {
    await withRig({}, async (rig) => {
      rig.fake.put(tinyId, { ...(await tinyRepository()), 'onnx/model.onnx_data': zerosOf(streamedBytes) });
      const { code, err } = await trivec(rig, ['pull', tinyId], [`--import=${memoryFlag}`]);
      expect(code).toBe(0);
      const kibibytes = Number(/maxRSS=(\d+)/u.exec(err)?.[1]);
      expect(kibibytes * 1024).toBeLessThan(maxStreamingBytes);
    });
  });

  it.each([
    ['../escape', 'is no model name'],
    [`${tinyId}@../../x`, 'is no model name'],
    ['name', 'is no model name'],
  ])('%s is refused', async (name, expected) => {
    await withRig({}, async (rig) => {
      const { code, err } = await trivec(rig, ['pull', name]);
      expect(code).toBe(2);
      expect(err).toContain(expected);
      expect(rig.fake.requests).toEqual([]);
    });
  });

  it('a revision in two places, or one that is a path, is refused', async () => {
    await withRig({}, async (rig) => {
      const twice = await trivec(rig, ['pull', `${tinyId}@v1`, '--revision', 'v2']);
      expect(twice.err).toContain('leave out --revision');
      const path = await trivec(rig, ['pull', tinyId, '--revision', '../../x']);
      expect(path.err).toContain('is no branch, tag or commit');
    });
  });
});

describe('trivec models list', () => {
  it('lists the shipped models and those in the cache, with size, commit and weights', async () => {
    await withRig({}, async (rig) => {
      const commit = rig.fake.put(tinyId, await tinyRepository());
      await trivec(rig, ['pull', tinyId]);
      const listed = JSON.parse((await trivec(rig, ['list', '--json'])).out) as Record<string, unknown>[];
      expect(listed.map(({ modelId }) => modelId)).toEqual(['all-MiniLM-L6-v2', 'splade-tiny', tinyId]);
      expect(listed[0]).toMatchObject({ source: 'directory', commit: null, precisions: ['int8', 'fp16'] });
      expect(listed[2]).toMatchObject({ source: 'hub', commit, revisions: ['main'], precisions: ['fp32'] });
      const { out } = await trivec(rig, ['list']);
      expect(out).toMatch(new RegExp(`^${tinyId} +2[0-9.]+ kB +${commit.slice(0, 12)} +main +fp32$`, 'mu'));
    });
  });
});

describe('trivec models inspect', () => {
  it('says what a model in the cache serves, and with which graph', async () => {
    await withRig({}, async (rig) => {
      const files = await tinyRepository();
      const graph = files[graphPath] ?? fileOf('');
      const half = await converted(Buffer.concat([...graph.read(0)]), ['narrow']);
      rig.fake.put(tinyId, {
        ...files,
        'onnx/model_fp16.onnx': fileOf(half),
        'onnx/model_int8.onnx': graph,
      });
      await trivec(rig, ['pull', tinyId, '--precision', 'all']);
      const report = JSON.parse((await trivec(rig, ['inspect', tinyId, '--json'])).out) as Record<string, unknown>;
      expect(report).toMatchObject({
        modelId: tinyId,
        role: 'a text encoder',
        serves: ['embed', 'multiVector'],
        serving: { pooling: 'mean', isNormalized: true, maxTokens: 64, runPolicy: { kind: 'padded' } },
        chosenGraph: {
          cpu: { path: 'onnx/model_int8.onnx', precision: 'int8', conversion: [] },
          gpu: { path: 'onnx/model_fp16.onnx', precision: 'fp16', conversion: [] },
        },
        problems: [],
      });
    });
  });

  it('says to a person how each device would be served, and what is done for it', async () => {
    await withRig({}, async (rig) => {
      rig.fake.put(tinyId, await tinyRepository());
      await trivec(rig, ['pull', tinyId]);
      const { out } = await trivec(rig, ['inspect', tinyId]);
      expect(out).toMatch(/^vector +mean pooling, normalize, \d+ long$/mu);
      expect(out).toMatch(/^runs +any texts together, padded$/mu);
      expect(out).toMatch(/^used on a CPU +onnx\/model.onnx as fp32$/mu);
      expect(out).toMatch(/^used on a GPU +onnx\/model.onnx as fp32->fp16; float32 weights are narrowed to float16$/mu);
    });
  });

  it('names what keeps a model from being served', async () => {
    await withRig({}, async (rig) => {
      const pooling = fileOf(JSON.stringify({ pooling_mode_max_tokens: true }));
      rig.fake.put(tinyId, {
        ...(await tinyRepository()),
        'modules.json': fileOf('[]'),
        '1_Pooling/config.json': pooling,
      });
      await trivec(rig, ['pull', tinyId]);
      const { code, err } = await trivec(rig, ['inspect', tinyId]);
      expect(code).toBe(2);
      expect(err).toContain('modules.json');
    });
  });

  it('a graph that was cut off is named with its size and what to do, and a pull mends it', async () => {
    await withRig({}, async (rig) => {
      rig.fake.put(tinyId, await tinyRepository());
      const folder = (await trivec(rig, ['pull', tinyId])).out.trim();
      const whole = await readFile(join(folder, graphPath));
      await writeFile(join(folder, graphPath), whole.subarray(0, -1000));
      const { code, err } = await trivec(rig, ['inspect', tinyId]);
      expect(code).toBe(2);
      expect(err).toContain(`${graphPath}: is no complete ONNX model (${String(whole.byteLength - 1000)} bytes)`);
      await trivec(rig, ['pull', tinyId]);
      expect((await trivec(rig, ['inspect', tinyId])).code).toBe(0);
    });
  });

  it('one that is nowhere is one problem with the command that gets it', async () => {
    await withRig({}, async (rig) => {
      const { code, err } = await trivec(rig, ['inspect', tinyId]);
      expect(code).toBe(2);
      expect(err).toContain(`run "trivec models pull ${tinyId}"`);
    });
  });
});
