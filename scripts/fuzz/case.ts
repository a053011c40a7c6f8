/** Owns what one attack is, and how it is kept as a file. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where found cases lie, and with them those that are worth a replay each time. */
export const casesFolder = fileURLToPath(new URL('../../test/fuzz/cases', import.meta.url));

/** Bytes for one server. */
export interface FuzzCase {
  readonly transport: 'http' | 'stdio';
  readonly bytes: Buffer;
  /**
   * The body of each request, in order, where the requests around them are well formed; null where nobody can say what a
   * server must make of the bytes.
   */
  readonly bodies: readonly Buffer[] | null;
}

/** A case with what it stands for. */
export interface KeptCase extends FuzzCase {
  readonly rule: string;
}

interface CaseFile {
  readonly rule: string;
  readonly transport: FuzzCase['transport'];
  /** In base64. */
  readonly bytes: string;
  readonly bodies: readonly string[] | null;
}

/** Every kept case by the name of its file. */
export function readCases(): ReadonlyMap<string, KeptCase> {
  const names = readdirSync(casesFolder).filter((name) => name.endsWith('.json'));
  return new Map(
    names.sort().map((name) => {
      const { rule, transport, bytes, bodies } = JSON.parse(readFileSync(join(casesFolder, name), 'utf8')) as CaseFile;
      const read = { rule, transport, bytes: Buffer.from(bytes, 'base64') };
      return [name, { ...read, bodies: bodies?.map((body) => Buffer.from(body, 'base64')) ?? null }];
    }),
  );
}

/** Keeps a case under a name that only its bytes decide, and gives the path of its file. */
export function keepCase({ rule, transport, bytes, bodies }: KeptCase): string {
  const hash = createHash('sha256').update(bytes).digest('hex').slice(0, 12);
  const path = join(casesFolder, `${transport}-${hash}.json`);
  const file: CaseFile = {
    rule,
    transport,
    bytes: bytes.toString('base64'),
    bodies: bodies?.map((body) => body.toString('base64')) ?? null,
  };
  mkdirSync(casesFolder, { recursive: true });
  writeFileSync(path, `${JSON.stringify(file, null, 2)}\n`);
  return path;
}
