/** Owns the console's files: read once into memory, each with the one path that it answers, and the headers they carry. */
import { createHash } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, sep } from 'node:path';
import type { Answer } from './answer.ts';

/** One file as it is sent. */
export interface ConsoleFile {
  readonly body: Buffer;
  readonly contentType: string;
  readonly etag: string;
  /** Its name changes with its content, so that no copy of it is ever out of date. */
  readonly isHashed: boolean;
}

/** Files by the path that they answer. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The page that `/` answers. */
const indexName = 'index.html';

/** What the page may do: run and show what this server sends, and call this server. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const commonHeaders: OutgoingHttpHeaders = {
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

/** The files of a built console; null where the folder has no page. */
export async function readConsole(folder: string): Promise<ConsoleFiles | null> {
  const names = await namesIn(folder);
  if (!names.includes(indexName)) return null;
  const files = names.flatMap((name) => {
    const contentType = contentTypes[extname(name)];
    return contentType === undefined ? [] : [{ name, contentType }];
  });
  const read = files.map(async ({ name, contentType }) => {
    const body = await readFile(join(folder, name));
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`;
    const isIndex = name === indexName;
    return [isIndex ? '/' : `/${name}`, { body, contentType, etag, isHashed: !isIndex }] as const;
  });
  return new Map(await Promise.all(read));
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder, { recursive: true, encoding: 'utf8' });
    return names.map((name) => name.split(sep).join('/'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** The file, or 304 where the caller has this very one. */
export function consoleAnswer(file: ConsoleFile, ifNoneMatch: string | undefined): Answer {
  const { body, contentType, etag, isHashed } = file;
  const caching = isHashed ? 'public, max-age=31536000, immutable' : 'no-cache';
  const headers = { ...commonHeaders, 'Cache-Control': caching, ETag: etag };
  const known = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  if (known.includes(etag) || known.includes('*')) return { status: 304, headers };
  return { status: 200, headers, body, contentType };
}
