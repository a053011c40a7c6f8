/** Owns the rules of getting wheels from a Python package index over a bad line. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { misbehave } from '../../support/fake-hub.ts';
import type { Misbehaviour } from '../../support/fake-hub.ts';
import { refusalOf } from '../hub/rig.ts';
import { blasWheel, contents, withCuda } from './rig.ts';
import type { CudaRig } from './rig.ts';

const page = `/simple/${blasWheel.project}/`;

/** Installs over these misbehaviours of the largest wheel's server, and proves that it came whole all the same. */
async function installOver(rig: CudaRig, ...misbehaviours: readonly Misbehaviour[]): Promise<void> {
  rig.index.next(blasWheel.file, ...misbehaviours);
  await rig.install();
  expect((await readFile(join(rig.setFolder, 'libblas.so.13'))).equals(contents['libblas.so.13'])).toBe(true);
}

const rangesOf = ({ index }: CudaRig) => index.asked(blasWheel.file).map(({ range }) => range);

describe('a wheel', () => {
  it('comes whole over connections that break and bodies that end early', async () => {
    await withCuda({}, async (rig) => {
      await installOver(rig, misbehave.cut(50_000), misbehave.short(70_000), misbehave.status(503));
      expect(rig.index.asked(blasWheel.file)).toHaveLength(4);
      expect(rangesOf(rig)[0]).toBeNull();
      expect(rangesOf(rig).at(-1)).toMatch(/^bytes=[1-9]\d*-$/u);
      expect(rig.clock.pausesMs).toHaveLength(3);
    });
  });

  it('comes anew where a server ignores the range', async () => {
    await withCuda({}, async (rig) => {
      await installOver(rig, misbehave.short(50_000), misbehave.ignoreRange());
      expect(rangesOf(rig)).toEqual([null, 'bytes=50000-']);
    });
  });

  it('of wrong bytes is got once more, and refused by its hash the second time', async () => {
    await withCuda({}, async (rig) => {
      await installOver(rig, misbehave.wrongBytes());
    });
    await withCuda({}, async (rig) => {
      rig.index.always(blasWheel.file, misbehave.wrongBytes());
      expect(await refusalOf(rig.install())).toContain(`expected sha256 ${blasWheel.sha256}, found`);
      expect(rig.index.asked(blasWheel.file)).toHaveLength(2);
      expect(existsSync(rig.setFolder)).toBe(false);
    });
  });

  it('whose server falls silent is asked for again from where it stopped', async () => {
    await withCuda({}, async (rig) => {
      const silent = misbehave.silent(60_000, () => {
        setImmediate(() => {
          rig.clock.fireStalls();
        });
      });
      await installOver(rig, silent);
      expect(rig.notes.some((note) => note.includes('sent nothing for 60 s'))).toBe(true);
    });
  });

  it('that comes a byte at a time is no fault', async () => {
    await withCuda({}, async (rig) => {
      rig.index.next('engine-1.0+cu13-py3-none-any.whl', misbehave.trickle());
      await rig.install();
      expect(rig.notes).toEqual([]);
    });
  });

  it('that answers a web page is refused with the variable to look at', async () => {
    await withCuda({}, async (rig) => {
      rig.index.next(blasWheel.file, misbehave.webPage());
      expect(await refusalOf(rig.install())).toContain('web page instead of the file: check PIP_INDEX_URL');
    });
  });

  it.each([
    [404, 'answers 404: check that PIP_INDEX_URL is a Python package index that has it, or use --from', 1],
    [403, 'answers 403: put a name and a password for the index into PIP_INDEX_URL', 1],
    [503, 'answers 503 (tried 6 times)', 6],
  ])('whose server answers %i is refused with what to do', async (status, expected, tries) => {
    await withCuda({}, async (rig) => {
      rig.index.always(blasWheel.file, misbehave.status(status));
      expect(await refusalOf(rig.install())).toContain(expected);
      expect(rig.index.asked(blasWheel.file)).toHaveLength(tries);
    });
  });
});

describe('the index', () => {
  it('may answer with a page of links, relative ones too', async () => {
    await withCuda({}, async (rig) => {
      rig.index.speakHtml();
      await installOver(rig);
    });
  });

  it('that was busy is asked again', async () => {
    await withCuda({}, async (rig) => {
      rig.index.next(page, misbehave.status(429, { 'retry-after': '7' }), misbehave.status(502));
      await installOver(rig);
      expect(rig.clock.pausesMs[0]).toBe(7000);
    });
  });

  it.each([
    ['does not know the project', misbehave.status(404), 'answers 404: check that PIP_INDEX_URL'],
    ['is none', misbehave.status(200), 'answers something else than a Python package index would'],
    ['is a login page', misbehave.webPage(), 'does not list'],
  ])('that %s is named with the variable to look at', async (_, misbehaviour, expected) => {
    await withCuda({}, async (rig) => {
      rig.index.next(page, misbehaviour);
      const refusal = await refusalOf(rig.install());
      expect(refusal).toContain(expected);
      expect(refusal).toContain('PIP_INDEX_URL');
      expect(rig.index.asked(page)).toHaveLength(1);
    });
  });

  it('that lists another file under the name is refused before the file is asked for', async () => {
    await withCuda({}, async (rig) => {
      const files = [{ filename: blasWheel.file, url: 'x.whl', hashes: { sha256: 'a'.repeat(64) } }];
      rig.index.next(page, ({ response }) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ files }));
      });
      expect(await refusalOf(rig.install())).toContain(`where ${blasWheel.sha256} is expected`);
      expect(rig.index.asked(blasWheel.file)).toEqual([]);
    });
  });

  it('that cannot be reached is one problem', async () => {
    await withCuda({ connection: { endpoint: 'http://127.0.0.1:1/simple' } }, async (rig) => {
      expect(await refusalOf(rig.install())).toMatch(/ECONNREFUSED\) \(tried 6 times\)$/u);
    });
  });

  it('is given its password, the server that the files lie on is not', async () => {
    await withCuda({ connection: { authorization: 'Basic c2VjcmV0' } }, async (rig) => {
      await rig.install();
      const given = rig.index.requests.map(({ target, authorization }) => [
        target.startsWith('/simple/'),
        authorization,
      ]);
      expect(new Set(given.map(String))).toEqual(new Set(['true,Basic c2VjcmV0', 'false,']));
    });
  });
});
