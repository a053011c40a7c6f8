import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../src/errors.ts';
import { createMemoryBudget } from '../../../src/http/memory-budget.ts';
import { openTls, readCredentials, type TlsFiles } from '../../../src/http/tls.ts';
import { encryptKey, makeCertificate, needsOpenssl } from '../../support/certificates.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { lookOnce, temporaryFolder } from '../../support/files.ts';
import { gate, reply } from './fake-service.ts';
import { createHarnesses, post } from './harness.ts';

const { start, closeAll } = createHarnesses();
afterEach(closeAll);
const folder = temporaryFolder();
const { skip } = needsOpenssl;
const one = skip ? null : makeCertificate(folder, 'one');
const two = skip ? null : makeCertificate(folder, 'two');
const day = 86_400_000;

/** Files of the first pair that a test may change. */
let copies = 0;
function copyOfOne(): TlsFiles {
  const certFile = join(folder, `copy-${String((copies += 1))}.crt`);
  const keyFile = join(folder, `copy-${String(copies)}.key`);
  replace({ certFile, keyFile }, one);
  return { certFile, keyFile };
}

function replace(files: TlsFiles, by: TlsFiles | null): void {
  if (by === null) throw new Error('there is no certificate');
  copyFileSync(by.certFile, files.certFile);
  copyFileSync(by.keyFile, files.keyFile);
  chmodSync(files.keyFile, 0o600);
}

function createParts() {
  const clock = createFakeClock();
  const logged: string[] = [];
  const write = (fields: Record<string, unknown>, message: string) =>
    logged.push(`${message} ${JSON.stringify(fields)}`);
  return { clock, logged, parts: { clock, log: { info: write, warn: write }, wallClockMs: () => Date.now() } };
}

async function startSecure(files: TlsFiles, limits = {}) {
  const rig = createParts();
  const tls = await openTls(files, rig.parts);
  const harness = await start({ memory: createMemoryBudget(100_000_000) }, limits, tls);
  return { ...rig, harness };
}

interface SecureConnection {
  readonly socket: TLSSocket;
  until(pattern: RegExp): Promise<void>;
  readonly ended: Promise<string>;
}

function open(port: number, options: ConnectionOptions = {}): Promise<SecureConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    let text = '';
    let look: () => void = () => undefined;
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      look();
    });
    const ended = new Promise<string>((settle) => {
      socket.once('close', () => {
        settle(text);
      });
    });
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      resolve({
        socket,
        ended,
        until: (pattern) =>
          new Promise((settle) => {
            look = () => {
              if (pattern.test(text)) settle();
            };
            look();
          }),
      });
    });
  });
}

const subjectOf = async (port: number) => {
  const { socket } = await open(port);
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
};

describe.skipIf(skip)('a certificate', () => {
  it.each<[string, (files: TlsFiles) => TlsFiles, RegExp]>([
    ['whose file is not there', (files) => ({ ...files, certFile: '/nowhere/x' }), /--tls-cert.*no such file/],
    ['whose key is not there', (files) => ({ ...files, keyFile: '/nowhere/x' }), /--tls-key.*no such file/],
    [
      'that is no PEM',
      (files) => {
        writeFileSync(files.certFile, 'geheim');
        return files;
      },
      /--tls-cert.*no certificate in PEM/,
    ],
    [
      'whose key is no PEM',
      (files) => {
        writeFileSync(files.keyFile, 'geheim');
        return files;
      },
      /--tls-key.*no private key in PEM/,
    ],
    [
      'whose key has a passphrase',
      (files) => {
        encryptKey(one?.keyFile ?? '', files.keyFile);
        return files;
      },
      /--tls-key.*without passphrase/,
    ],
    ['with the key of another one', (files) => ({ ...files, keyFile: two?.keyFile ?? '' }), /belongs to another/],
    [
      'with a broken chain',
      (files) => {
        const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
        writeFileSync(files.certFile, `${readFileSync(files.certFile, 'utf8')}${broken}`);
        return files;
      },
      /--tls-cert.*cannot be used/,
    ],
  ])('%s is one configuration error that shows nothing of the files', async (_, change, problem) => {
    const failure = readCredentials(change(copyOfOne()), Date.now());
    await expect(failure).rejects.toBeInstanceOf(ConfigurationError);
    const { problems } = (await failure.catch((error: unknown) => error)) as ConfigurationError;
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems.join()).not.toMatch(/geheim/);
  });

  it.each([
    ['has expired', 2 * day, /expired on/],
    ['is not valid yet', -2 * day, /not valid before/],
  ])('that %s is a configuration error', async (_, offsetMs, problem) => {
    await expect(readCredentials(copyOfOne(), Date.now() + offsetMs)).rejects.toThrow(problem);
    await expect(readCredentials(copyOfOne(), Date.now())).resolves.toMatchObject({ minVersion: 'TLSv1.2' });
  });

  it('whose key every user of the machine can read is served with a warning', async () => {
    const files = copyOfOne();
    const closed = createParts();
    await openTls(files, closed.parts);
    expect(closed.logged).toEqual([]);
    chmodSync(files.keyFile, 0o644);
    const wide = createParts();
    await openTls(files, wide.parts);
    expect(wide.logged).toEqual([expect.stringContaining('every user of this machine')]);
  });
});

describe.skipIf(skip)('a listener with TLS', () => {
  it('answers over TLS as without, and says https', async () => {
    const { harness } = await startSecure(copyOfOne());
    expect(harness.listener.url).toBe(`https://127.0.0.1:${String(harness.listener.port)}`);
    const { socket, ended } = await open(harness.listener.port);
    socket.write(post('/rcp/ping', '"hello"'));
    expect(await ended).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*hello/);
  });

  it.each([
    ['TLSv1.3', true],
    ['TLSv1.2', true],
    ['TLSv1.1', false],
    ['TLSv1', false],
  ] as const)('%s is spoken: %s, also with a certificate that was read again', async (version, isSpoken) => {
    const files = copyOfOne();
    const { harness, clock } = await startSecure(files);
    const attempt = () =>
      // The client's own library would refuse the old ones before the server could.
      open(harness.listener.port, { minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }).then(
        ({ socket }) => {
          socket.destroy();
          return true;
        },
        () => false,
      );
    expect(await attempt()).toBe(isSpoken);
    replace(files, two);
    await lookOnce(clock);
    expect(await subjectOf(harness.listener.port)).toBe('two');
    expect(await attempt()).toBe(isSpoken);
  });

  it('serves a new certificate to new connections and keeps those that are open', async () => {
    const files = copyOfOne();
    const { harness, clock, logged } = await startSecure(files);
    const { port } = harness.listener;
    const kept = await open(port);
    kept.socket.write(post('/rcp/ping', '"before"', { Connection: 'keep-alive' }));
    await kept.until(/before/);
    replace(files, two);
    expect(await subjectOf(port)).toBe('one');
    await lookOnce(clock);
    expect(await subjectOf(port)).toBe('two');
    expect(logged).toEqual([expect.stringContaining('read again')]);
    kept.socket.write(post('/rcp/ping', '"after"'));
    expect(await kept.ended).toContain('after');
  });

  it('keeps the old certificate while the new files do not fit each other, told once, and takes them when they do', async () => {
    const files = copyOfOne();
    const { harness, clock, logged } = await startSecure(files);
    copyFileSync(two?.certFile ?? '', files.certFile);
    for (let look = 0; look < 3; look++) await lookOnce(clock);
    expect(await subjectOf(harness.listener.port)).toBe('one');
    expect(logged).toEqual([expect.stringMatching(/stays as it was.*belongs to another/)]);
    copyFileSync(two?.keyFile ?? '', files.keyFile);
    await lookOnce(clock);
    expect(await subjectOf(harness.listener.port)).toBe('two');
  });

  it('closes plain HTTP, half a handshake and silence, and serves the others', async () => {
    const { harness } = await startSecure(copyOfOne());
    const plain = connectTcp(harness.listener.port, '127.0.0.1');
    const received = new Promise<string>((resolve) => {
      let text = '';
      plain.on('data', (chunk) => (text += chunk.toString('latin1')));
      plain
        .on('error', () => undefined)
        .once('close', () => {
          resolve(text);
        });
    });
    plain.write(post('/rcp/ping'));
    expect(await received).not.toContain('HTTP/1.1 200');
    const { socket, ended } = await open(harness.listener.port);
    socket.write(post('/rcp/ping', '"fine"'));
    expect(await ended).toContain('fine');
    expect(harness.service.calls).toHaveLength(1);
  });

  it('ends when it is closed, also with a handshake that nobody finishes, and lets a running call finish', async () => {
    const { harness } = await startSecure(copyOfOne());
    const { port } = harness.listener;
    const silent = connectTcp(port, '127.0.0.1');
    const silentEnded = new Promise<void>((resolve) => {
      silent
        .on('error', () => undefined)
        .once('close', () => {
          resolve();
        });
    });
    await new Promise((resolve) => silent.once('connect', resolve));
    const { promise, open: finish } = gate();
    harness.service.handle = async () => {
      await promise;
      return reply('"done"');
    };
    const running = await open(port);
    running.socket.write(post('/rcp/ping', '{}', { Connection: 'keep-alive' }));
    await harness.service.received(1);
    const idle = await open(port);
    const closed = harness.close(60_000);
    await silentEnded;
    await idle.ended;
    finish();
    expect(await running.ended).toMatch(/Connection: close[^]*done/i);
    await closed;
  });

  it('gives up an answer that nobody reads', async () => {
    const { harness } = await startSecure(copyOfOne(), { answerStallMs: 1000 });
    const large = JSON.stringify('x'.repeat(30_000_000));
    harness.service.handle = () => reply(large);
    const { socket, ended } = await open(harness.listener.port);
    socket.pause();
    socket.write(post('/rcp/ping'));
    await harness.service.received(1);
    await expect
      .poll(() => harness.clock.advance(1000).then(() => harness.refused), { interval: 20 })
      .toEqual(['stalled']);
    socket.resume();
    expect((await ended).length).toBeLessThan(large.length);
  });
});
