import { describe, expect, it } from 'vitest';
import { readAddress, shownAddress } from '../../../src/client/address.ts';
import { connect } from '../../../src/client/browser.ts';
import { createFakeServer, rejectionOf } from './fake-server.ts';

describe('an address', () => {
  it.each([
    ['http://127.0.0.1:8000', 'http://127.0.0.1:8000/rcp'],
    ['http://127.0.0.1:8000/', 'http://127.0.0.1:8000/rcp'],
    ['http://127.0.0.1:8000/rcp/', 'http://127.0.0.1:8000/rcp'],
    ['https://example.org/search', 'https://example.org/search/rcp'],
    ['https://user:pw@example.org/search/?tenant=7#x', 'https://example.org/search/rcp'],
  ])('%s is reached at %s', (target, base) => {
    expect(readAddress(target).base).toBe(base);
  });

  it.each([
    '127.0.0.1:8000',
    'ftp://example.org',
    '',
    'http://',
    'user:geheim@example.org:8000',
    'ftp://a:geheim@b?geheim',
  ])('%j is refused, and what may be a password is not repeated', (target) => {
    expect(() => readAddress(target)).toThrow(TypeError);
    expect(() => readAddress(target)).toThrow(/^(?!.*geheim).*begins with http:/u);
  });

  it('gives its query to every request', async () => {
    const { fetch, seen } = createFakeServer();
    const client = await connect('http://fake/base?tenant=7&a=%20', { fetch });
    await client.ping();
    expect(seen.map(({ url }) => url)).toEqual([
      'http://fake/base/rcp/info?tenant=7&a=%20',
      'http://fake/base/rcp/ping?tenant=7&a=%20',
    ]);
  });

  it.each([
    ['http://user:pw@fake', 'user:pw'],
    ['http://user@fake', 'user:'],
    ['http://:token@fake', ':token'],
    ['http://%C3%BCser:p%40%3A@fake', 'üser:p@:'],
  ])('%s sends its user name and password as Basic', async (target, credentials) => {
    const { fetch, seen } = createFakeServer();
    await connect(target, { fetch });
    expect(seen[0]?.url).toBe('http://fake/rcp/info');
    expect(seen[0]?.headers.get('authorization')).toBe(`Basic ${Buffer.from(credentials).toString('base64')}`);
  });

  it.each([
    [{ apiKey: 'key' }, /apiKey.*user name and password in the address/],
    [{ headers: { authorization: 'x' } }, /headers: authorization.*user name and password in the address/],
  ])('with a password, beside %j, is refused by naming both', async (options, message) => {
    const { fetch, seen } = createFakeServer();
    const error = await rejectionOf(connect('http://user:geheim@fake', { ...options, fetch }));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('geheim');
    expect(seen).toEqual([]);
  });

  it('with a password that cannot be read is refused without repeating it', async () => {
    const error = await rejectionOf(connect('http://user:geheim%ZZ@fake', {}));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).not.toContain('geheim');
  });

  it('is shown without what may be secret', () => {
    const shown = ['http://u:p@h:1/a?key=1#f', 'http://h/', 'u:p@h:80', 'http://u:p?w@h', 'http://h/a@b'].map(
      shownAddress,
    );
    expect(shown).toEqual(['http://h:1/a', 'http://h', 'h:80', 'http://h', 'http://h/a@b']);
  });
});
