import type * as crypto from 'node:crypto';
import { chmodSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { maxKeys, type KeyEntry } from '../../../src/http/key-file.ts';
import { createKeyRing } from '../../../src/http/key-ring.ts';
import { openKeys, type Keys } from '../../../src/http/keys.ts';
import type { QuotaLimits } from '../../../src/rpc/quota.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { lookOnce, temporaryFolder } from '../../support/files.ts';
import { createHarnesses, post } from './harness.ts';

const comparisons = vi.hoisted(() => ({ count: 0 }));
// The real comparison, counted.
vi.mock('node:crypto', async (load) => {
  const real = await load<typeof crypto>();
  const timingSafeEqual: typeof real.timingSafeEqual = (one, other) => {
    comparisons.count += 1;
    return real.timingSafeEqual(one, other);
  };
  return { ...real, timingSafeEqual };
});

const folder = temporaryFolder();
const { start, closeAll } = createHarnesses();
const opened: Keys[] = [];
afterEach(async () => {
  for (const keys of opened.splice(0)) keys.close();
  await closeAll();
});

let written = 0;
function keyFile(text: string, mode = 0o600): string {
  const file = join(folder, `keys-${String((written += 1))}`);
  writeFileSync(file, text, { mode });
  return file;
}

const noLimits: QuotaLimits = { requestsPerSecond: 0, requestBurst: 0, queuedTokens: 0 };

function createParts(limits: Partial<QuotaLimits> = {}) {
  const clock = createFakeClock();
  const logged: string[] = [];
  const refused: [string | null, string][] = [];
  const forgotten: string[] = [];
  const write = (fields: Record<string, unknown>, message: string) =>
    logged.push(`${message} ${JSON.stringify(fields)}`);
  return {
    clock,
    logged,
    refused,
    forgotten,
    parts: {
      clock,
      limits: { ...noLimits, ...limits },
      log: { info: write, warn: write },
      onRefused: (name: string | null, reason: string) => refused.push([name, reason]),
      onForgotten: (name: string) => forgotten.push(name),
    },
  };
}

async function open(text: string, limits: Partial<QuotaLimits> = {}, apiKeys: string[] | null = null) {
  const file = keyFile(text);
  const rig = createParts(limits);
  const keys = await openKeys({ apiKeys, file }, rig.parts);
  opened.push(keys);
  const passes = (key: string) => keys.identify(`Bearer ${key}`) !== null;
  return { ...rig, file, keys, passes };
}

describe('the ring of keys', () => {
  const entries = (...keys: string[]): KeyEntry[] => keys.map((key) => ({ key, name: null, limits: {} }));

  it('lets each of its keys in and nothing else, and knows them apart', () => {
    const { identify } = createKeyRing(entries('one', 'two', 'three'), createParts().parts);
    const callers = ['one', 'two', 'three'].map((key) => identify(`Bearer ${key}`));
    expect(new Set(callers).size).toBe(3);
    expect(callers).not.toContain(null);
    for (const wrong of ['on', 'onee', 'ONE', 'one two', 'one,two', '']) {
      expect(identify(`Bearer ${wrong}`)).toBeNull();
    }
  });

  it.each(['first', 'middle', 'last', 'none of them', ''])(
    'compares %j with every key, so that the time tells nothing',
    (presented) => {
      const { identify } = createKeyRing(entries('first', 'middle', 'last'), createParts().parts);
      comparisons.count = 0;
      identify(`Bearer ${presented}`);
      expect(comparisons.count).toBe(3);
    },
  );

  it('of a thousand keys finds the last one', () => {
    const keys = Array.from({ length: maxKeys }, (_, index) => `key-${String(index)}`);
    const { identify } = createKeyRing(entries(...keys), createParts().parts);
    expect(identify(`Bearer key-${String(maxKeys - 1)}`)).not.toBeNull();
  });
});

describe('keys of the settings and of a file', () => {
  it('let in together', async () => {
    const { passes } = await open('web:in-file', {}, ['a', 'b']);
    expect(['a', 'b', 'in-file', 'web', 'web:in-file', 'c'].map(passes)).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });

  it('let everybody in where there are none', async () => {
    const { identify } = await openKeys({ apiKeys: null, file: null }, createParts().parts);
    expect(identify(undefined)).toEqual({ quota: null });
  });

  it.each([
    ['is not there', () => join(folder, 'missing'), /no such file/],
    ['is a folder', () => folder, /is a folder/],
    ['is empty', () => keyFile(''), /holds no key/],
    ['is too large', () => keyFile('#'.repeat(1_048_577)), /is over/],
  ])('end the start where the file %s', async (_, path, problem) => {
    const failure = openKeys({ apiKeys: ['k'], file: path() }, createParts().parts);
    await expect(failure).rejects.toBeInstanceOf(ConfigurationError);
    await expect(failure).rejects.toThrow(problem);
  });

  it('warn where every user of the machine can read the file', async () => {
    const open600 = createParts();
    (await openKeys({ apiKeys: null, file: keyFile('k') }, open600.parts)).close();
    expect(open600.logged).toEqual([]);
    const open644 = createParts();
    const file = keyFile('k');
    chmodSync(file, 0o644);
    (await openKeys({ apiKeys: null, file }, open644.parts)).close();
    expect(open644.logged).toEqual([expect.stringContaining('every user')]);
  });
});

describe('a file of keys that changes', () => {
  it('is in force after the next look, written in place, replaced, or reached through another link', async () => {
    const { clock, file, passes } = await open('old');
    writeFileSync(file, 'in-place');
    expect(passes('old')).toBe(true);
    await lookOnce(clock);
    expect([passes('old'), passes('in-place')]).toEqual([false, true]);
    renameSync(keyFile('renamed'), file);
    await lookOnce(clock);
    expect([passes('in-place'), passes('renamed')]).toEqual([false, true]);
    rmSync(file);
    symlinkSync(keyFile('linked'), file);
    await lookOnce(clock);
    expect([passes('renamed'), passes('linked')]).toEqual([false, true]);
  });

  it.each([
    ['empty', (file: string) => writeFileSync(file, '')],
    ['broken', (file: string) => writeFileSync(file, 'geheim geheim')],
    ['gone', (file: string) => rmSync(file)],
  ])('and is %s changes nothing, is told once, and is read again when it is whole', async (_, damage) => {
    const { clock, file, passes, logged } = await open('old');
    damage(file);
    for (let look = 0; look < 4; look++) await lookOnce(clock);
    expect(passes('old')).toBe(true);
    expect(logged).toEqual([expect.stringContaining('the keys stay as they were')]);
    writeFileSync(file, 'new');
    await lookOnce(clock);
    expect([passes('old'), passes('new')]).toEqual([false, true]);
    expect(logged.join()).not.toMatch(/geheim/);
  });

  it('is no longer looked at after the end', async () => {
    const { clock, keys } = await open('old');
    keys.close();
    expect(clock.pendingTimers()).toBe(0);
  });

  it('keeps the accounts of a key that stays, with the limits of its new line', async () => {
    const { clock, file, keys } = await open('a:one requestsPerSecond=1 requestBurst=2\nb:two');
    const before = keys.identify('Bearer one');
    expect([1, 2, 3].map(() => before?.quota?.takeRequest())).toEqual([null, null, 1000]);
    writeFileSync(file, 'a:one requestsPerSecond=1 requestBurst=2 # again\nb:two');
    await lookOnce(clock);
    expect(keys.identify('Bearer one')).toBe(before);
    writeFileSync(file, 'a:one requestsPerSecond=1 requestBurst=4');
    await lookOnce(clock);
    expect(keys.identify('Bearer one')?.quota?.takeRequest()).toBeNull();
  });

  it('forgets the names that are gone, so that their number is that of the file', async () => {
    const { clock, file, forgotten } = await open('a:one\nb:two\nthree');
    writeFileSync(file, 'a:other\nthree');
    await lookOnce(clock);
    expect(forgotten).toEqual(['b']);
  });
});

describe('the limits of a key', () => {
  const ping = (key: string) =>
    post('/rcp/ping', '{"jsonrpc":"2.0","id":"x7","method":"ping"}', { Authorization: `Bearer ${key}` });

  it('refuse a call over its rate with -32011, its id and both times to come back, before it is read', async () => {
    const { keys, clock, refused } = await open('web:fast\nslow', { requestsPerSecond: 1, requestBurst: 2 });
    const harness = await start({ identify: keys.identify });
    const statuses: unknown[] = [];
    for (let call = 0; call < 3; call++) statuses.push((await harness.exchange(ping('fast'))).status);
    expect(statuses).toEqual([200, 200, 200]);
    expect(harness.service.calls).toHaveLength(2);
    await clock.advance(500);
    const answer = await harness.exchange(ping('fast'));
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(JSON.parse(answer.body)).toMatchObject({
      id: 'x7',
      error: { code: -32011, data: { retryable: true, retryAfterMs: 500 } },
    });
    expect(harness.refused).toEqual(['rate', 'rate']);
    expect(refused).toEqual([
      ['web', 'rate'],
      ['web', 'rate'],
    ]);
    await clock.advance(500);
    await harness.exchange(ping('fast'));
    expect(harness.service.calls).toHaveLength(3);
  });

  it('are its own: another key is served meanwhile, and a wrong one is still 401', async () => {
    const { keys } = await open('fast requestsPerSecond=1\nfree', {});
    const harness = await start({ identify: keys.identify });
    for (let call = 0; call < 3; call++) await harness.exchange(ping('fast'));
    for (let call = 0; call < 3; call++) await harness.exchange(ping('free'));
    expect(harness.service.calls).toHaveLength(4);
    expect((await harness.exchange(ping('wrong'))).status).toBe(401);
  });

  it('hold no memory for a body that is refused, and read it to its end', async () => {
    const { keys } = await open('k requestsPerSecond=1');
    let claimedBytes = 0;
    const memory = {
      open: () => ({
        claim: (bytes: number) => {
          claimedBytes += bytes;
          return true;
        },
        release: () => undefined,
      }),
    };
    const harness = await start({ identify: keys.identify, memory, limits: { bodyBytes: 1e6, bodyTimeoutMs: 10_000 } });
    await harness.exchange(ping('k'));
    claimedBytes = 0;
    const body = `{"id":1,"method":"embed","params":{"inputs":["${'x'.repeat(500_000)}"]}}`;
    const answer = await harness.exchange(post('/rcp/embed', body, { Authorization: 'Bearer k' }));
    expect(JSON.parse(answer.body)).toMatchObject({ id: 1, error: { code: -32011 } });
    expect(claimedBytes).toBeLessThan(100_000);
  });

  it('are not touched by health, metrics and preflights', async () => {
    const { keys } = await open('k requestsPerSecond=1');
    const harness = await start({ identify: keys.identify });
    const get = (path: string) =>
      harness.exchange(
        Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\nConnection: close\r\n\r\n`),
      );
    for (const path of ['/metrics', '/health/live', '/metrics']) expect((await get(path)).status).toBe(200);
    await harness.exchange(ping('k'));
    expect(harness.service.calls).toHaveLength(1);
  });
});
