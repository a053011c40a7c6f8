/** Owns the certificate of the server: judged before it is used, read again when its files change. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { SecureVersion } from 'node:tls';
import type { Clock } from '../clock.ts';
import { ConfigurationError } from '../errors.ts';
import { fileVersions, watchFiles } from './file-watch.ts';
import type { AccessLog } from './keys.ts';
import { fileProblem, isReadableByAll } from './secret-file.ts';

/** Where certificate and key are. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** What a listener serves TLS with. */
export interface TlsCredentials {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly minVersion: SecureVersion;
}

/** Credentials that may change while they are in use. */
export interface TlsSource {
  readonly credentials: TlsCredentials;
  /** Calls back with every later pair that can be used, until the returned function is called. */
  watch(apply: (credentials: TlsCredentials) => void): () => void;
}

/** Older versions have known weaknesses. */
const minVersion: SecureVersion = 'TLSv1.2';

/**
 * The pair of two files.
 * @throws ConfigurationError for a file that cannot be read or is no PEM, a key that needs a passphrase or belongs to
 * another certificate, and a certificate that is not in force
 */
export async function readCredentials({ certFile, keyFile }: TlsFiles, nowMs: number): Promise<TlsCredentials> {
  const problems: string[] = [];
  const attempt = async <Read>(about: string, work: () => Read | Promise<Read>, wording?: string) => {
    try {
      return await work();
    } catch (error) {
      problems.push(`${about}: ${wording ?? fileProblem(error)}`);
      return null;
    }
  };
  const certAbout = `--tls-cert ${certFile}`;
  const keyAbout = `--tls-key ${keyFile}`;
  const cert = await attempt(certAbout, () => readFile(certFile));
  const key = await attempt(keyAbout, () => readFile(keyFile));
  const x509 = cert && (await attempt(certAbout, () => new X509Certificate(cert), 'holds no certificate in PEM form'));
  const privateKey =
    key &&
    (await attempt(keyAbout, () => createPrivateKey(key), 'holds no private key in PEM form without passphrase'));
  if (x509) problems.push(...certificateProblems(x509, privateKey, nowMs).map((text) => `${certAbout}: ${text}`));
  const credentials = cert && key && { cert, key, minVersion };
  if (credentials && problems.length === 0) {
    await attempt(certAbout, () => createSecureContext(credentials), 'cannot be used: its chain or key is broken');
  }
  if (!credentials || problems.length > 0) throw new ConfigurationError(problems);
  return credentials;
}

function certificateProblems(x509: X509Certificate, key: KeyObject | null, nowMs: number): string[] {
  const problems: string[] = [];
  if (key !== null && !x509.checkPrivateKey(key)) problems.push('the key of --tls-key belongs to another certificate');
  if (Date.parse(x509.validTo) <= nowMs) problems.push(`expired on ${x509.validTo}`);
  if (Date.parse(x509.validFrom) > nowMs) problems.push(`not valid before ${x509.validFrom}`);
  return problems;
}

/**
 * The credentials of two files. A pair that later cannot be used changes nothing and is told once.
 * @throws ConfigurationError where they cannot be used now
 */
export async function openTls(
  files: TlsFiles,
  parts: {
    readonly clock: Clock;
    readonly log: AccessLog;
    /** The time of day. @unit ms */
    readonly wallClockMs: () => number;
  },
): Promise<TlsSource> {
  const { clock, log, wallClockMs } = parts;
  const paths = [files.certFile, files.keyFile];
  const versions = await fileVersions(paths);
  const credentials = await readCredentials(files, wallClockMs());
  if (await isReadableByAll(files.keyFile)) {
    log.warn({ file: files.keyFile }, 'every user of this machine can read the private key');
  }
  return {
    credentials,
    watch(apply) {
      const onChange = async () => {
        try {
          apply(await readCredentials(files, wallClockMs()));
          log.info({ file: files.certFile }, 'the certificate was read again');
        } catch (error) {
          if (!(error instanceof ConfigurationError)) throw error;
          log.warn({ problems: error.problems }, 'the certificate stays as it was: its files cannot be used');
        }
      };
      return watchFiles({ paths, clock, onChange }, versions);
    },
  };
}
