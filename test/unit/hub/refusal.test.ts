/** Owns the rules of being refused by a hub, and of the token. */
import { describe, expect, it } from 'vitest';
import { redirectTarget, retryAfterMs } from '../../../src/model/hub/http-client.ts';
import { HubFault } from '../../../src/model/hub/fault.ts';
import { pullModel } from '../../../src/model/hub/pull.ts';
import { requireRepository } from '../../../src/model/hub/repository.ts';
import { createFakeHub, misbehave } from '../../support/fake-hub.ts';
import { refusalOf, withRig } from './rig.ts';
import type { HubRig, RigOptions } from './rig.ts';
import { graphPath, tinyId, tinyRepository } from './tiny-repository.ts';

const tiny = requireRepository(tinyId);
const token = 'hf_Secret0123456789';

async function withTiny(options: RigOptions, test: (rig: HubRig) => Promise<void>): Promise<void> {
  await withRig(options, async (rig) => {
    rig.fake.put(tinyId, await tinyRepository());
    await test(rig);
  });
}

describe('a refusal says what to do', () => {
  const gated = { 'x-error-code': 'GatedRepo' };
  it.each([
    ['401 without a token', 401, {}, null, 'the name is wrong, or the repository is private: then set HF_TOKEN'],
    ['401 with a token', 401, {}, token, 'does not accept HF_TOKEN'],
    ['a gated repository without a token', 401, gated, null, 'accept its terms on PAGE, then set HF_TOKEN'],
    [
      'a gated repository with a token',
      403,
      gated,
      token,
      'accept its terms on PAGE, then use an HF_TOKEN of that account',
    ],
    ['403 without a token', 403, {}, null, 'forbids access to tiny-org/tiny.model-1 (403): set HF_TOKEN'],
    ['403 with a token', 403, {}, token, 'the account of HF_TOKEN may not read it, see PAGE'],
    ['404', 404, {}, null, 'is not there (404): check the name, the revision and HF_ENDPOINT'],
    ['404 of a revision', 404, { 'x-error-code': 'RevisionNotFound' }, null, 'has no such revision'],
    ['a status that no hub gives', 418, {}, null, 'answers 418, which no hub does'],
  ])('to %s it is its own message', async (_, status, headers, itsToken, expected) => {
    await withTiny(itsToken === null ? {} : { token: itsToken }, async ({ fake, hub }) => {
      fake.always('/revision/main', misbehave.status(status, headers));
      const refusal = await refusalOf(pullModel(hub, tiny, 'auto'));
      expect(refusal).toContain(expected.replace('PAGE', `${fake.url}/${tinyId}`));
      expect(refusal).not.toContain(token);
      expect(fake.requests).toHaveLength(1);
    });
  });

  it('a refusal of one file names the file', async () => {
    await withTiny({}, async ({ fake, hub }) => {
      fake.always(graphPath, misbehave.status(404, { 'x-error-code': 'EntryNotFound' }));
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toMatch(/^onnx\/model\.onnx: http.* is not there \(404\)/u);
    });
  });

  it('429 is waited for as long as the hub asks, but not for ever', async () => {
    await withTiny({}, async ({ fake, hub, clock }) => {
      fake.next(graphPath, misbehave.status(429, { 'retry-after': '7' }));
      await pullModel(hub, tiny, 'auto');
      expect(clock.pausesMs).toEqual([7000]);
    });
    await withTiny({}, async ({ fake, hub, clock }) => {
      fake.next(graphPath, misbehave.status(429, { 'retry-after': '3600' }));
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toContain('too many requests (HF_TOKEN raises the limit)');
      expect(clock.pausesMs).toEqual([]);
    });
  });

  it('a hub that cannot be reached is one problem with its address', async () => {
    await withTiny({ connection: { endpoint: 'http://127.0.0.1:1' } }, async ({ hub }) => {
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toMatch(/127\.0\.0\.1:1\/.*ECONNREFUSED.*tried 6 times/u);
    });
  });
});

describe('the token', () => {
  it('goes with every request to the hub, and a redirect to another host carries none', async () => {
    const other = await createFakeHub();
    try {
      await withTiny({ token }, async ({ fake, hub, notes }) => {
        other.put(tinyId, await tinyRepository());
        fake.next(graphPath, misbehave.redirect(`${other.url}*`));
        await pullModel(hub, tiny, 'auto');
        expect(new Set(fake.requests.map(({ authorization }) => authorization))).toEqual(new Set([`Bearer ${token}`]));
        expect(other.requests.map(({ authorization }) => authorization)).toEqual([null]);
        expect(notes.join()).not.toContain(token);
      });
    } finally {
      await other.close();
    }
  });

  it('stays with a redirect inside the host, and is never sent where none is set', async () => {
    await withTiny({ token }, async ({ fake, hub }) => {
      fake.next('tokenizer.json', misbehave.redirect('*', 307));
      await pullModel(hub, tiny, 'auto');
      expect(fake.asked('tokenizer.json').map(({ authorization }) => authorization)).toEqual([
        `Bearer ${token}`,
        `Bearer ${token}`,
      ]);
    });
    await withTiny({}, async ({ fake, hub }) => {
      await pullModel(hub, tiny, 'auto');
      expect(fake.requests.every(({ authorization }) => authorization === null)).toBe(true);
    });
  });

  it('comes back to the hub when another host redirects there', async () => {
    const other = await createFakeHub();
    try {
      await withTiny({ token }, async ({ fake, hub }) => {
        other.always(graphPath, misbehave.redirect(`${fake.url}*`));
        fake.next(graphPath, misbehave.redirect(`${other.url}*`));
        await pullModel(hub, tiny, 'auto');
        expect(fake.asked(graphPath).map(({ authorization }) => authorization !== null)).toEqual([true, true]);
      });
    } finally {
      await other.close();
    }
  });
});

describe('redirects', () => {
  it('are bounded', async () => {
    await withTiny({}, async ({ fake, hub }) => {
      fake.always(graphPath, misbehave.redirect('*'));
      expect(await refusalOf(pullModel(hub, tiny, 'auto'))).toContain('redirects more than 5 times');
      expect(fake.asked(graphPath)).toHaveLength(6);
    });
  });

  it('a range goes with them', async () => {
    await withTiny({}, async ({ fake, hub }) => {
      fake.next(graphPath, misbehave.short(1500), misbehave.redirect('*'));
      await pullModel(hub, tiny, 'auto');
      expect(fake.asked(graphPath).map(({ range }) => range)).toEqual([null, 'bytes=1500-', 'bytes=1500-']);
    });
  });

  it('a signed address that has run out is asked for anew', async () => {
    const other = await createFakeHub();
    try {
      await withTiny({}, async ({ fake, hub, notes }) => {
        other.always(graphPath, misbehave.status(403));
        fake.next(graphPath, misbehave.redirect(`${other.url}/${graphPath}?signature=secret`));
        await pullModel(hub, tiny, 'auto');
        expect(notes.join()).toContain('answers 403');
        expect(notes.join()).not.toContain('signature');
      });
    } finally {
      await other.close();
    }
  });

  it('never lead from https to anything else', () => {
    const from = new URL('https://hub.example/a');
    expect(redirectTarget(from, '/b').href).toBe('https://hub.example/b');
    expect(redirectTarget(from, 'https://cdn.example/b?x=1').href).toBe('https://cdn.example/b?x=1');
    for (const location of ['http://hub.example/a', 'file:///etc/passwd', 'ftp://hub.example/', null]) {
      expect(() => redirectTarget(from, location)).toThrow(HubFault);
    }
  });
});

describe('Retry-After', () => {
  it.each([
    ['3', 3000],
    ['Thu, 01 Jan 1970 00:00:10 GMT', 9000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', null],
    [null, null],
  ])('%s is a pause of %s ms', (value, expected) => {
    expect(retryAfterMs(value, 1000)).toBe(expected);
  });
});
