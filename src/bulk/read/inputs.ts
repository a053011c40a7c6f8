/** Owns which files an input is made of, and how it is known again. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { writtenNames } from '../work/paths.ts';

/** Kinds of files, by the ends of their names. */
const kindsByEnd: Readonly<Record<string, InputKind>> = {
  jsonl: 'jsonl',
  ndjson: 'jsonl',
  csv: 'csv',
  tsv: 'tsv',
  parquet: 'parquet',
  txt: 'text',
};

/** Kinds of files that can be read. */
export const inputKinds = ['jsonl', 'csv', 'tsv', 'parquet', 'text'] as const;
/** One of `inputKinds`. */
export type InputKind = (typeof inputKinds)[number];

/** A file of an input. */
export interface InputFile {
  /** null: stdin. */
  readonly path: string | null;
  /** As messages call it. */
  readonly name: string;
  readonly kind: InputKind;
  /** 0 for stdin. @unit bytes */
  readonly bytes: number;
}

/** The end of a file that is looked at to know it again. @unit bytes */
const knownBytes = 65_536;
/** Bytes read at a time. @unit bytes */
const readBytes = 1_048_576;

const kindOf = (path: string): InputKind | null =>
  kindsByEnd[/\.([^./\\]+)$/u.exec(path)?.[1]?.toLowerCase() ?? ''] ?? null;

/**
 * The files of a path in the order in which they are read: the file itself, or every file of a known kind below a
 * folder, sorted by path, without those whose name or folder begins with a dot, and without what runs have written.
 * @throws ConfigurationError
 */
export async function findInputs(operand: string, kind: InputKind | null): Promise<InputFile[]> {
  if (operand === '-') {
    if (kind === 'parquet') throw new ConfigurationError(['--format: a Parquet file cannot be read from stdin']);
    return [{ path: null, name: 'stdin', kind: kind ?? 'jsonl', bytes: 0 }];
  }
  const found = await stat(operand).catch(() => null);
  if (found === null) throw new ConfigurationError([`${operand} cannot be read: there is no such file`]);
  if (!found.isFile() && !found.isDirectory())
    throw new ConfigurationError([`${operand} is neither a file nor a folder; - reads stdin`]);
  if (!found.isDirectory()) {
    const own = kind ?? kindOf(operand);
    if (own === null) throw new ConfigurationError([`${operand} is of no known kind; say which with --format`]);
    return [{ path: resolve(operand), name: operand, kind: own, bytes: found.size }];
  }
  const paths = await filesBelow(operand);
  const files = paths.flatMap(({ path, bytes }) => {
    const own = kindOf(path);
    return own === null || (kind !== null && own !== kind)
      ? []
      : [{ path: resolve(path), name: path, kind: own, bytes }];
  });
  const ends = Object.keys(kindsByEnd).map((end) => `.${end}`);
  if (files.length === 0) throw new ConfigurationError([`${operand} holds no file that ends in ${ends.join(', ')}`]);
  return files;
}

async function filesBelow(folder: string): Promise<{ path: string; bytes: number }[]> {
  const files: { path: string; bytes: number }[] = [];
  // Links may lead back up: each folder is read once.
  const seen = new Set<string>();
  const walk = async (below: string): Promise<void> => {
    const real = await realpath(below);
    if (seen.has(real)) return;
    seen.add(real);
    const names = await readdir(below);
    const written = writtenNames(names);
    for (const name of names) {
      if (name.startsWith('.') || written.has(name)) continue;
      const path = join(below, name);
      // A link to nothing is no file.
      const found = await stat(path).catch(() => null);
      if (found?.isFile() === true) files.push({ path, bytes: found.size });
      else if (found?.isDirectory() === true) await walk(path);
    }
  };
  await walk(folder);
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The bytes of a file from an offset on. */
export function bytesOf({ path }: InputFile, offset: number): AsyncIterable<Buffer> {
  if (path === null) return process.stdin;
  return createReadStream(path, { start: offset, highWaterMark: readBytes });
}

/** What tells this input from another one, and from itself after a change. */
export async function fingerprintOf(operand: string, files: readonly InputFile[]): Promise<string> {
  const hash = createHash('sha256');
  for (const { path, kind, bytes } of files) {
    hash.update(JSON.stringify([path === null ? '-' : relative(resolve(operand), path), kind, bytes]));
    if (path === null) continue;
    const handle = await open(path, 'r');
    try {
      const { mtimeMs } = await handle.stat();
      hash.update(JSON.stringify([mtimeMs]));
      for (const start of [0, Math.max(0, bytes - knownBytes)]) {
        const { bytesRead, buffer } = await handle.read(Buffer.alloc(knownBytes), 0, knownBytes, start);
        hash.update(buffer.subarray(0, bytesRead));
      }
    } finally {
      await handle.close();
    }
  }
  return `${operand === '-' ? '-' : resolve(operand)} ${hash.digest('hex').slice(0, 32)}`;
}
