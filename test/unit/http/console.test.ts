import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { readConsole } from '../../../src/http/console.ts';
import { isOriginAllowed } from '../../../src/http/origin.ts';
import { temporaryFolder } from '../../support/files.ts';
import { createHarnesses, onlyWith, request } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);

const page = '<!doctype html><title>t</title>';
async function consoleFiles() {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'console'));
  writeFileSync(join(folder, 'index.html'), page);
  writeFileSync(join(folder, 'console/index-1a.js'), 'start()');
  writeFileSync(join(folder, 'secret.pem'), 'x');
  return readConsole(folder);
}
const get = (path: string, headers: Record<string, string> = {}) => request('GET', path, '', headers);

describe('the console', () => {
  it('is the page at /, without a key, never kept without asking, and known again by its ETag', async () => {
    const harness = await start({ consoleFiles: await consoleFiles(), identify: onlyWith('k') });
    const answer = await harness.exchange(get('/'));
    expect([answer.status, answer.body]).toEqual([200, page]);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    const etag = answer.headers.get('etag') ?? '';
    const again = await harness.exchange(get('/', { 'If-None-Match': `"x", W/${etag}` }));
    expect([again.status, again.body, again.headers.get('content-length')]).toEqual([304, '', undefined]);
  });

  it('may run and show what this server sends, and nothing else', async () => {
    const harness = await start({ consoleFiles: await consoleFiles() });
    for (const path of ['/', '/console/index-1a.js']) {
      const { headers } = await harness.exchange(get(path));
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
    }
  });

  it('has files whose names change with their content, which are kept for good', async () => {
    const harness = await start({ consoleFiles: await consoleFiles() });
    const { status, headers, body } = await harness.exchange(get('/console/index-1a.js'));
    expect([status, body, headers.get('content-type')]).toEqual([200, 'start()', 'text/javascript; charset=utf-8']);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
  });

  it('answers HEAD with the head alone', async () => {
    const harness = await start({ consoleFiles: await consoleFiles() });
    const { status, headers, body } = await harness.exchange(request('HEAD', '/'));
    expect([status, headers.get('content-length'), body]).toEqual([200, String(page.length), '']);
  });

  it.each(['/secret.pem', '/index.html.map', '/console/', '/console/../secret.pem', '/console/%2e%2e/secret.pem'])(
    'has no other file: %s',
    async (path) => {
      const harness = await start({ consoleFiles: await consoleFiles() });
      expect((await harness.exchange(get(path))).status).toBe(404);
    },
  );

  it('is refused to a page of somebody else and under a name that is not of this machine', async () => {
    const harness = await start({ consoleFiles: await consoleFiles() });
    expect((await harness.exchange(get('/', { Host: 'evil.example' }))).status).toBe(403);
    expect((await harness.exchange(get('/', { Origin: 'http://evil.example' }))).status).toBe(403);
  });

  it('is not there where it is turned off or was not built', async () => {
    const harness = await start({ consoleFiles: null });
    expect((await harness.exchange(get('/'))).status).toBe(404);
    expect(await readConsole(join(temporaryFolder(), 'none'))).toBeNull();
  });
});

describe('a page of the server itself', () => {
  const loopback = { corsOrigins: [], allowedHosts: null, isLoopbackBind: true };
  const open = { ...loopback, isLoopbackBind: false };
  const named = { ...open, allowedHosts: ['app.example'] };
  it.each([
    ['http://127.0.0.1:8000', '127.0.0.1:8000', loopback, true],
    ['http://localhost:8000', 'LOCALHOST:8000', loopback, true],
    ['http://127.0.0.1:3000', '127.0.0.1:8000', loopback, false],
    ['http://localhost:8000', '127.0.0.1:8000', loopback, false],
    ['http://10.0.0.7:8000', '10.0.0.7:8000', open, true],
    ['http://[fd00::1]:8000', '[fd00::1]:8000', open, true],
    // A name that nobody checks may have been rebound to this machine.
    ['http://evil.example:8000', 'evil.example:8000', open, false],
    ['http://1.2.3.4.evil.example', '1.2.3.4.evil.example', open, false],
    ['https://app.example', 'app.example', named, true],
    ['https://evil.example', 'evil.example', named, false],
    ['null', 'null', open, false],
    ['', '', loopback, false],
  ])('%s to %s may call: %#', (origin, host, policy, mayCall) => {
    expect(isOriginAllowed(origin, policy, host)).toBe(mayCall);
  });
});
