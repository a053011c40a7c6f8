/** Owns self-made certificates for tests of TLS. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { requirement } from './require.ts';

/** Whether certificates can be made here. */
export const needsOpenssl = requirement(
  'openssl',
  spawnSync('openssl', ['version']).status === 0,
  'the program openssl is not installed',
);

/** A certificate for localhost and 127.0.0.1 that signs itself, valid for a day, and its key. */
export function makeCertificate(folder: string, name: string): { readonly certFile: string; readonly keyFile: string } {
  const certFile = join(folder, `${name}.crt`);
  const keyFile = join(folder, `${name}.key`);
  const { status, stderr } = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
      ...['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
      ...['-out', certFile, '-keyout', keyFile],
    ],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`openssl made no certificate: ${stderr}`);
  return { certFile, keyFile };
}

/** The same key, under a passphrase. */
export function encryptKey(keyFile: string, encryptedFile: string): void {
  const { status, stderr } = spawnSync(
    'openssl',
    ['pkcs8', '-topk8', '-in', keyFile, '-out', encryptedFile, '-passout', 'pass:geheim'],
    { encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`openssl encrypted no key: ${stderr}`);
}
