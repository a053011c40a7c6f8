/** Owns the rules of a download over a bad line. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { fileOf, misbehave } from '../../support/fake-hub.ts';
import type { FakeHub, Misbehaviour } from '../../support/fake-hub.ts';
import { pathsIn, refusalOf, withRig } from './rig.ts';
import type { HubRig } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);

/** The graph as the hub has it. */
async function putTiny(fake: FakeHub): Promise<Buffer> {
  const files = await tinyRepository();
  fake.put(tinyId, files);
  return Buffer.concat([...(files[graphPath]?.read(0) ?? [])]);
}

const rangesOf = (fake: FakeHub): (string | null)[] => fake.asked(graphPath).map(({ range }) => range);

/** Pulls over these misbehaviours, and proves that the file came whole all the same. */
async function pullOver(rig: HubRig, ...misbehaviours: readonly Misbehaviour[]): Promise<Buffer> {
  const content = await putTiny(rig.fake);
  rig.fake.next(graphPath, ...misbehaviours);
  const { folder } = await pullModel(rig.hub, tiny, 'auto');
  expect((await readFile(join(folder, graphPath))).equals(content)).toBe(true);
  expect((await pathsIn(rig.cacheDir)).some((path) => path.includes('incomplete'))).toBe(false);
  return content;
}

/** Whether the cache holds a file under the graph's final name, in blobs or in a snapshot. */
async function hasFinalGraph({ cacheDir }: HubRig, content: Buffer): Promise<boolean> {
  const blob = createHash('sha256').update(content).digest('hex');
  return (await pathsIn(cacheDir)).some((path) => path.endsWith(graphPath) || path.endsWith(`/${blob}`));
}

describe('a download', () => {
  it('makes good for connections that break', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, misbehave.cut(1000), misbehave.cut(500));
      expect(rig.fake.asked(graphPath)).toHaveLength(3);
      expect(rig.clock.pausesMs).toHaveLength(2);
    });
  });

  it('goes on after a body that ended early without a length', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, misbehave.short(1234));
      expect(rangesOf(rig.fake)).toEqual([null, 'bytes=1234-']);
    });
  });

  it('goes on in a later process with what an earlier one left', async () => {
    await withRig({ limits: { maxAttempts: 1 } }, async (rig) => {
      const content = await putTiny(rig.fake);
      rig.fake.next(graphPath, misbehave.short(1500));
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toContain(
        `ends after 1500 of ${String(content.byteLength)} bytes`,
      );
      expect(await hasFinalGraph(rig, content)).toBe(false);
      await pullModel(rig.hub, tiny, 'auto');
      expect(rangesOf(rig.fake)).toEqual([null, 'bytes=1500-']);
    });
  });

  it('begins anew where the server ignores the range', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, misbehave.short(1500), misbehave.ignoreRange());
      expect(rangesOf(rig.fake)).toEqual([null, 'bytes=1500-']);
    });
  });

  it('begins anew where the part that is here turns out to be wrong', async () => {
    await withRig({ limits: { maxAttempts: 1 } }, async (rig) => {
      await putTiny(rig.fake);
      rig.fake.next(graphPath, misbehave.short(1500));
      await refusalOf(pullModel(rig.hub, tiny, 'auto'));
      const part = (await pathsIn(rig.cacheDir)).find((path) => path.includes('incomplete')) ?? '';
      await writeFile(join(rig.cacheDir, part), 'x'.repeat(1500));
      await pullModel(
        { ...rig.hub, pacing: { ...rig.hub.pacing, limits: { ...rig.hub.pacing.limits, maxAttempts: 2 } } },
        tiny,
        'auto',
      );
      expect(rangesOf(rig.fake)).toEqual([null, 'bytes=1500-', null]);
    });
  });

  it('a part that is longer than the file is thrown away', async () => {
    await withRig({ limits: { maxAttempts: 1 } }, async (rig) => {
      const content = await putTiny(rig.fake);
      rig.fake.next(graphPath, misbehave.short(10));
      await refusalOf(pullModel(rig.hub, tiny, 'auto'));
      const part = (await pathsIn(rig.cacheDir)).find((path) => path.includes('incomplete')) ?? '';
      await writeFile(join(rig.cacheDir, part), Buffer.concat([content, content]));
      await pullModel(rig.hub, tiny, 'auto');
      expect(rangesOf(rig.fake)).toEqual([null, null]);
    });
  });

  it('one wrong hash is tried again, two are the end, with both hashes and without a final file', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, misbehave.wrongBytes());
    });
    await withRig({}, async (rig) => {
      const content = await putTiny(rig.fake);
      rig.fake.always(graphPath, misbehave.wrongBytes());
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toMatch(
        /^onnx\/model\.onnx: expected sha256 [0-9a-f]{64}, found [0-9a-f]{64}: .*tried 2 times/u,
      );
      expect(rig.fake.asked(graphPath)).toHaveLength(2);
      expect(await hasFinalGraph(rig, content)).toBe(false);
    });
  });

  it('a small file is proved by git’s hash', async () => {
    await withRig({}, async (rig) => {
      await putTiny(rig.fake);
      rig.fake.always('modules.json', misbehave.wrongBytes());
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toMatch(
        /^modules\.json: expected git SHA-1 [0-9a-f]{40}/u,
      );
    });
  });

  it('a web page with status 200 is refused at once, and a good hub works afterwards', async () => {
    await withRig({}, async (rig) => {
      const content = await putTiny(rig.fake);
      rig.fake.next(graphPath, misbehave.webPage());
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toContain(
        'answers with a web page instead of the file',
      );
      expect(rig.fake.asked(graphPath)).toHaveLength(1);
      expect(await hasFinalGraph(rig, content)).toBe(false);
      const { folder } = await pullModel(rig.hub, tiny, 'auto');
      expect((await readFile(join(folder, graphPath))).equals(content)).toBe(true);
    });
  });

  it('an address that is no hub is said to be none', async () => {
    await withRig({}, async (rig) => {
      await putTiny(rig.fake);
      rig.fake.always('/revision/main', misbehave.webPage());
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toContain('is not JSON: check HF_ENDPOINT');
      expect(await pathsIn(rig.cacheDir)).toEqual([]);
    });
  });

  it('a body longer than the file is never kept', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, misbehave.excess());
      expect(rangesOf(rig.fake)).toEqual([null, null]);
    });
  });

  it('an announced length that is not the file’s is refused before a byte is kept', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, ({ response }) => {
        response.writeHead(200, { 'content-length': '3' }).end('abc');
      });
      expect(rangesOf(rig.fake)).toEqual([null, null]);
    });
  });

  it('another part than was asked for is refused', async () => {
    await withRig({}, async (rig) => {
      await pullOver(rig, misbehave.short(1500), ({ response, file }) => {
        const total = String(file?.sizeBytes);
        response.writeHead(206, { 'content-range': `bytes 0-9/${total}` }).end('0123456789');
      });
      expect(rangesOf(rig.fake)).toEqual([null, 'bytes=1500-', 'bytes=1500-']);
    });
  });

  it('a server that falls silent is left after the time allowed, and asked for the rest', async () => {
    await withRig({}, async (rig) => {
      const content = await putTiny(rig.fake);
      const silent = new Promise<void>((resolve) => {
        rig.fake.next(graphPath, misbehave.silent(1000, resolve));
      });
      const pulled = pullModel(rig.hub, tiny, 'auto');
      await silent;
      rig.clock.fireStalls();
      const { folder } = await pulled;
      expect((await readFile(join(folder, graphPath))).equals(content)).toBe(true);
      expect(rig.notes.join()).toContain('sent nothing for 60 s');
      expect(rig.fake.asked(graphPath)).toHaveLength(2);
    });
  });

  it('a slow server is not a silent one', async () => {
    await withRig({}, async (rig) => {
      await putTiny(rig.fake);
      rig.fake.next('1_Pooling/config.json', misbehave.trickle());
      await pullModel(rig.hub, tiny, 'auto');
      expect(rig.fake.asked('1_Pooling/config.json')).toHaveLength(1);
    });
  });

  it('tries that bring nothing are bounded, with growing pauses', async () => {
    await withRig({}, async (rig) => {
      await putTiny(rig.fake);
      rig.fake.always(graphPath, misbehave.status(503));
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toContain('answers 503 (tried 6 times)');
      expect(rig.clock.pausesMs).toEqual([375, 750, 1500, 3000, 6000]);
    });
  });

  it('tries that bring enough are not counted, those that repeat old bytes are', async () => {
    const large = fileOf(Buffer.alloc(400_000, 5));
    const limits = { maxAttempts: 2, minProgressBytes: 65_536 };
    await withRig({ limits }, async (rig) => {
      rig.fake.put(tinyId, { ...(await tinyRepository()), 'onnx/model.onnx_data': large });
      rig.fake.next('model.onnx_data', ...Array.from({ length: 4 }, () => misbehave.short(90_000)));
      await pullModel(rig.hub, tiny, 'auto');
      expect(rig.fake.asked('model.onnx_data').length).toBe(5);
    });
    await withRig({ limits }, async (rig) => {
      rig.fake.put(tinyId, { ...(await tinyRepository()), 'onnx/model.onnx_data': large });
      rig.fake.always('model.onnx_data', misbehave.short(90_000, { ignoresRange: true }));
      expect(await refusalOf(pullModel(rig.hub, tiny, 'auto'))).toContain('ends after 90000 of 400000 bytes');
      expect(rig.fake.asked('model.onnx_data').length).toBeLessThanOrEqual(3);
    });
  });
});
