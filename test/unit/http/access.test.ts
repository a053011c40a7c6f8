import { afterEach, describe, expect, it } from 'vitest';
import { identifyEverybody } from '../../../src/http/key-ring.ts';
import { isHostAllowed, isHostWellFormed, isOriginAllowed } from '../../../src/http/origin.ts';
import { createHarnesses, onlyWith, post, request } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);
const page = 'https://app.example';

describe('the key', () => {
  it.each([
    ['Bearer secret', true],
    ['bearer secret', true],
    ['BEARER   secret ', true],
    ['Bearer Secret', false],
    ['Bearer secre', false],
    ['Bearer secrets', false],
    ['Bearer', false],
    ['Bearer ', false],
    ['Basic secret', false],
    ['secret', false],
    [undefined, false],
  ])('Authorization %s passes: %s', (authorization, passes) => {
    expect(onlyWith('secret')(authorization) !== null).toBe(passes);
    expect(identifyEverybody(authorization)).not.toBeNull();
  });

  it('may hold characters beyond ASCII, which arrive as latin1', () => {
    expect(onlyWith('schlüssel')(`Bearer ${Buffer.from('schlüssel').toString('latin1')}`)).not.toBeNull();
  });

  it('an empty key is not matched by a missing header', () => {
    expect(onlyWith('')(undefined)).toBeNull();
  });

  it.each([
    ['/rcp/embed', '{"jsonrpc":"2.0","id":1,"method":"embed"}', '1'],
    ['/rcp/no/such', '{"id":"a\\u0062","method":"no/such"}', '"a\\u0062"'],
    ['/rcp/embed', '{"method":"embed","params":{"token":"secret"}}', 'null'],
    ['/rcp', '[{"id":1}]', 'null'],
    ['/rcp/embed', 'not json', 'null'],
  ])('missing: POST %s %s is 401 with -32012 for id %s, and nothing runs', async (path, body, rawId) => {
    const harness = await start({ identify: onlyWith('secret') });
    const answer = await harness.exchange(post(path, body));
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.body).toContain(`"id":${rawId},`);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: -32012, data: { retryable: false } } });
    expect(harness.service.calls).toEqual([]);
  });

  it('present: the call runs', async () => {
    const harness = await start({ identify: onlyWith('secret') });
    expect((await harness.exchange(post('/rcp/ping', '{}', { Authorization: 'Bearer secret' }))).status).toBe(200);
    expect(harness.service.calls).toHaveLength(1);
  });
});

describe('Host', () => {
  const loopback = { corsOrigins: [], allowedHosts: null, isLoopbackBind: true };
  const open = { ...loopback, isLoopbackBind: false };
  const named = { ...open, allowedHosts: ['api.example', 'other.example:8443'] };
  it.each([
    ['127.0.0.1', true, true, true],
    ['127.0.0.1:8000', true, true, true],
    ['127.1.2.3', true, true, true],
    ['localhost', true, true, true],
    ['LocalHost:1', true, true, true],
    ['[::1]:8000', true, true, true],
    ['[::1]', true, true, true],
    ['api.example', false, true, true],
    ['API.example:80', false, true, true],
    ['other.example:8443', false, true, true],
    ['other.example', false, true, false],
    ['evil.example', false, true, false],
    ['127.0.0.1.evil.example', false, true, false],
    ['localhost.evil.example', false, true, false],
    ['10.0.0.1', false, true, false],
    [undefined, false, true, false],
  ])('%s: on loopback %s, elsewhere %s, with allowed names %s', (host, onLoopback, elsewhere, withNames) => {
    expect(isHostAllowed(host, loopback)).toBe(onLoopback);
    expect(isHostAllowed(host, open)).toBe(elsewhere);
    expect(isHostAllowed(host, named)).toBe(withNames);
  });

  it.each(['127.0.0.1@evil', 'a b', '[::1', 'evil.example/x', 'ex%41mple'])(
    'malformed as %s is 403 where it is checked, else 400, with an empty body and its length',
    async (host) => {
      for (const [isLoopbackBind, status] of [
        [true, 403],
        [false, 400],
      ] as const) {
        const harness = await start({ isLoopbackBind });
        for (const path of ['/rcp/ping', '/metrics', '/nope']) {
          const answer = await harness.exchange(post(path, '{}', { Host: host }));
          expect([answer.status, answer.headers.get('content-length'), answer.body]).toEqual([status, '0', '']);
          expect(answer.headers.has('transfer-encoding')).toBe(false);
        }
        expect(harness.service.calls).toEqual([]);
        expect(harness.refused).toEqual(['host', 'host', 'host']);
      }
    },
  );

  it.each([
    [undefined, true],
    ['', true],
    ['api.example', true],
    ['api_1.example:', true],
    ['api.example:65535', true],
    ['[::1]:80', true],
    ['api.example:65536', false],
    ['api.example:8x', false],
    ['::1', false],
    ['user@api.example', false],
  ])('%s is well-formed: %s', (host, isWellFormed) => {
    expect(isHostWellFormed(host)).toBe(isWellFormed);
  });

  it('refused is 403 with an empty body before dispatch', async () => {
    const harness = await start();
    const answer = await harness.exchange(post('/rcp/ping', '{}', { Host: 'evil.example' }));
    expect([answer.status, answer.body]).toEqual([403, '']);
    expect(harness.service.calls).toEqual([]);
    expect(harness.refused).toEqual(['host']);
  });
});

describe('Origin', () => {
  const policy = { corsOrigins: [`${page}/`, 'http://localhost:3000'], allowedHosts: null, isLoopbackBind: true };
  it.each([
    [undefined, true],
    [page, true],
    ['http://localhost:3000', true],
    ['http://localhost:3001', false],
    ['http://app.example', false],
    ['https://app.example.evil.example', false],
    ['https://evil.example', false],
    ['null', false],
    ['', false],
  ])('%s may call: %s', (origin, mayCall) => {
    expect(isOriginAllowed(origin, policy)).toBe(mayCall);
  });

  it('that is not allowed is 403 before dispatch and gets no CORS header, also for a preflight', async () => {
    const harness = await start({ corsOrigins: [page] });
    for (const method of ['POST', 'OPTIONS']) {
      const answer = await harness.exchange(request(method, '/rcp/ping', '', { Origin: 'http://evil.example' }));
      expect([answer.status, answer.body]).toEqual([403, '']);
      expect(answer.headers.has('access-control-allow-origin')).toBe(false);
    }
    expect(harness.service.calls).toEqual([]);
  });

  it('is off by default', async () => {
    const harness = await start();
    expect((await harness.exchange(post('/rcp/ping', '{}', { Origin: page }))).status).toBe(403);
    expect((await harness.exchange(request('OPTIONS', '/rcp/ping', '', { Origin: page }))).status).toBe(403);
  });

  it('that is allowed gets its preflight without a key', async () => {
    const harness = await start({ corsOrigins: [page], identify: onlyWith('secret') });
    const answer = await harness.exchange(request('OPTIONS', '/rcp/embed', '', { Origin: page }));
    expect([answer.status, answer.body]).toEqual([204, '']);
    expect(answer.headers.get('access-control-allow-origin')).toBe(page);
    expect(answer.headers.get('vary')).toBe('Origin');
    expect(answer.headers.get('access-control-allow-methods')).toBe('POST, OPTIONS');
    expect(answer.headers.get('access-control-allow-headers')).toBe('content-type, authorization, accept, rcp-session');
    expect(Number(answer.headers.get('access-control-max-age'))).toBeGreaterThan(0);
  });

  it.each([
    ['a result', post('/rcp/ping', '{}', { Origin: page, Authorization: 'Bearer secret' }), 200],
    ['a missing key', post('/rcp/ping', '{}', { Origin: page }), 401],
    ['a wrong verb', request('GET', '/rcp/ping', '', { Origin: page }), 405],
    ['an unknown path', post('/nope', '{}', { Origin: page }), 404],
    ['a packed body', post('/rcp/ping', '{}', { Origin: page, 'Content-Encoding': 'br' }), 415],
    [
      'a body that is too long',
      post('/rcp/x', 'x'.repeat(1001), { Origin: page, Authorization: 'Bearer secret' }),
      200,
    ],
  ])('that is allowed may read %s', async (_, bytes, status) => {
    const harness = await start({ corsOrigins: [page], identify: onlyWith('secret') });
    const answer = await harness.exchange(bytes);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('access-control-allow-origin')).toBe(page);
    expect(answer.headers.get('vary')).toBe('Origin');
    const exposed = (answer.headers.get('access-control-expose-headers') ?? '').split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['Retry-After', 'X-Request-Id', 'Server-Timing']));
  });

  it.each(['/metrics', '/openapi.json', '/health', '/health/live', '/health/ready'])(
    'that is allowed may ask whether it may read %s with a key, and no other may',
    async (path) => {
      const options = { corsOrigins: [page], identify: onlyWith('secret'), openapi: Buffer.from('{}') };
      const harness = await start(options);
      const asked = { 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'authorization' };
      const answer = await harness.exchange(request('OPTIONS', path, '', { Origin: page, ...asked }));
      expect([answer.status, answer.body]).toEqual([204, '']);
      expect(answer.headers.get('access-control-allow-origin')).toBe(page);
      expect(answer.headers.get('access-control-allow-methods')).toBe('GET, HEAD, OPTIONS');
      expect(answer.headers.get('access-control-allow-headers')).toBe('authorization');
      const other = await harness.exchange(request('OPTIONS', path, '', { Origin: 'https://evil.example', ...asked }));
      expect(other.headers.has('access-control-allow-origin')).toBe(false);
      const plain = await harness.exchange(request('OPTIONS', path));
      expect([plain.status, plain.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS']);
    },
  );

  it('may read a failure', async () => {
    const harness = await start({ corsOrigins: [page] });
    harness.service.handle = () => {
      throw new Error('bug');
    };
    const answer = await harness.exchange(post('/rcp/ping', '{}', { Origin: page }));
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([500, page]);
  });
});
