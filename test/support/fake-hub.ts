/** Owns a hub on loopback that answers as Hugging Face does, and as badly as a test asks for. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';

/** Bytes that a fake file is written in. */
const pieceBytes = 65_536;
/** Files from this size on are listed with a sha256, as large files are. */
const largeFileBytes = 1_024;

/** A file of a fake repository. */
export interface FakeFile {
  readonly sizeBytes: number;
  /** The content from a byte on, in pieces. */
  read(fromByte: number): Iterable<Uint8Array>;
}

/** A file with this content. */
export const fileOf = (content: string | Uint8Array): FakeFile => {
  const bytes = Buffer.from(content);
  return {
    sizeBytes: bytes.byteLength,
    *read(fromByte) {
      for (let at = fromByte; at < bytes.byteLength; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
    },
  };
};

/** A file of zeros of any size, which nobody holds in memory. */
export const zerosOf = (sizeBytes: number): FakeFile => ({
  sizeBytes,
  *read(fromByte) {
    const piece = Buffer.alloc(pieceBytes);
    for (let at = fromByte; at < sizeBytes; at += pieceBytes)
      yield piece.subarray(0, Math.min(pieceBytes, sizeBytes - at));
  },
});

/** Every file of a folder, by its path inside it. */
export async function filesIn(folder: string): Promise<Record<string, FakeFile>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [relative(folder, path), fileOf(await readFile(path))] as const)),
  );
}

/** What the fake hub was asked. */
export interface SeenRequest {
  /** Path with its query; a whole address where it came as to a proxy. */
  readonly target: string;
  readonly range: string | null;
  readonly authorization: string | null;
}

/** One bad answer, in place of the right one. */
export type Misbehaviour = (context: {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The file that was asked for; null for anything else. */
  readonly file: FakeFile | null;
  readonly fromByte: number;
}) => Promise<void> | void;

const headersOf = (file: FakeFile, fromByte: number): Record<string, string> => ({
  'content-type': 'application/octet-stream',
  'content-length': String(file.sizeBytes - fromByte),
  ...(fromByte > 0
    ? { 'content-range': `bytes ${String(fromByte)}-${String(file.sizeBytes - 1)}/${String(file.sizeBytes)}` }
    : {}),
});

async function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  if (response.write(bytes) || response.destroyed) return;
  const settled = new AbortController();
  const { signal } = settled;
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]);
  settled.abort();
}

function* firstBytes(file: FakeFile, fromByte: number, count: number): Generator<Uint8Array> {
  let left = count;
  for (const piece of file.read(fromByte)) {
    if (left <= 0) return;
    yield piece.subarray(0, left);
    left -= piece.byteLength;
  }
}

/** Answers with a file, from a byte on. */
export async function sendFile(response: ServerResponse, file: FakeFile, fromByte: number): Promise<void> {
  response.writeHead(fromByte > 0 ? 206 : 200, headersOf(file, fromByte));
  for (const piece of file.read(fromByte)) {
    if (response.destroyed) return;
    await write(response, piece);
  }
  response.end();
}

const asked = (file: FakeFile | null): FakeFile => {
  if (file === null) throw new Error('this misbehaviour needs a file');
  return file;
};

/** Ways to answer badly. */
export const misbehave = {
  /** A status, perhaps with headers. */
  status:
    (status: number, headers: Readonly<Record<string, string>> = {}): Misbehaviour =>
    ({ response }) => {
      response.writeHead(status, headers).end('{"error":"no"}');
    },
  /** The right headers, some bytes of the body, then the connection breaks. */
  cut:
    (bytes: number): Misbehaviour =>
    async ({ response, file, fromByte }) => {
      response.writeHead(fromByte > 0 ? 206 : 200, headersOf(asked(file), fromByte));
      for (const piece of firstBytes(asked(file), fromByte, bytes)) await write(response, piece);
      setImmediate(() => response.destroy());
    },
  /** A body that ends too early and without an error, since no length was announced. */
  short:
    (bytes: number, { ignoresRange = false } = {}): Misbehaviour =>
    async ({ response, file, fromByte }) => {
      const first = ignoresRange ? 0 : fromByte;
      const headers = new Headers({ ...headersOf(asked(file), first), connection: 'close' });
      headers.delete('content-length');
      response.writeHead(first > 0 ? 206 : 200, Object.fromEntries(headers));
      for (const piece of firstBytes(asked(file), first, bytes)) await write(response, piece);
      response.end();
    },
  /** As many bytes as the file has, none of them right. */
  wrongBytes:
    (): Misbehaviour =>
    ({ response, file }) => {
      response.writeHead(200, headersOf(asked(file), 0));
      response.end(Buffer.alloc(asked(file).sizeBytes, 0x21));
    },
  /** More bytes than the file has, without an announcement. */
  excess:
    (): Misbehaviour =>
    ({ response, file }) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream', connection: 'close' });
      response.end(Buffer.alloc(asked(file).sizeBytes + 1, 0x21));
    },
  /** A web page with status 200, as portals and wrong addresses give. */
  webPage:
    (): Misbehaviour =>
    ({ response }) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html><body>Sign in</body></html>');
    },
  /** The whole file although a part was asked for. */
  ignoreRange:
    (): Misbehaviour =>
    ({ response, file }) =>
      sendFile(response, asked(file), 0),
  /** A redirect to the same path at another place, or to an address of its own. */
  redirect:
    (address: string, status = 302): Misbehaviour =>
    ({ request, response }) => {
      const location = address.endsWith('*') ? `${address.slice(0, -1)}${request.url ?? ''}` : address;
      response.writeHead(status, { location }).end('moved');
    },
  /** Some bytes, then nothing, with the connection open; calls back when the silence begins. */
  silent:
    (bytes: number, onSilent: () => void): Misbehaviour =>
    async ({ response, file, fromByte }) => {
      response.writeHead(fromByte > 0 ? 206 : 200, headersOf(asked(file), fromByte));
      for (const piece of firstBytes(asked(file), fromByte, bytes)) await write(response, piece);
      onSilent();
    },
  /** The right file, a byte at a time. */
  trickle:
    (): Misbehaviour =>
    async ({ response, file }) => {
      response.writeHead(200, headersOf(asked(file), 0));
      for (const piece of asked(file).read(0)) {
        for (const byte of piece) {
          await write(response, Uint8Array.of(byte));
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      response.end();
    },
} as const;

/** A hub on loopback. */
export interface FakeHub {
  /** Its address, for `HF_ENDPOINT`. */
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** Replaces a repository's files; gives the commit that `main` is now. */
  put(id: string, files: Readonly<Record<string, FakeFile>>): string;
  /** Answers the next requests whose path ends so with these misbehaviours, in order. */
  next(pathEnd: string, ...misbehaviours: readonly Misbehaviour[]): void;
  /** Answers every request whose path ends so with this one. */
  always(pathEnd: string, misbehaviour: Misbehaviour): void;
  /** Requests for a path that ends so. */
  asked(pathEnd: string): SeenRequest[];
  close(): Promise<void>;
}

interface Commit {
  readonly files: Readonly<Record<string, FakeFile>>;
}

function hashOf(file: FakeFile, algorithm: 'sha256' | 'sha1'): string {
  const hash = createHash(algorithm);
  if (algorithm === 'sha1') hash.update(`blob ${String(file.sizeBytes)}\0`);
  for (const piece of file.read(0)) hash.update(piece);
  return hash.digest('hex');
}

function entryOf(path: string, file: FakeFile): unknown {
  const isLarge = file.sizeBytes >= largeFileBytes;
  const size = file.sizeBytes;
  // The object id of a large file is its pointer's: it must never be taken for the content's.
  return isLarge
    ? { type: 'file', path, size, oid: 'f'.repeat(40), lfs: { oid: hashOf(file, 'sha256'), size, pointerSize: 134 } }
    : { type: 'file', path, size, oid: hashOf(file, 'sha1') };
}

/** Starts a hub. */
export async function createFakeHub(): Promise<FakeHub> {
  const commits = new Map<string, Commit>();
  const heads = new Map<string, string>();
  const requests: SeenRequest[] = [];
  const queued: { readonly pathEnd: string; readonly misbehaviour: Misbehaviour; readonly isLasting: boolean }[] = [];

  const answerApi = (response: ServerResponse, path: string): boolean => {
    const [, id = '', kind, revision = ''] =
      /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/([^/]+)$/u.exec(path) ?? [];
    const head = heads.get(id);
    if (kind === undefined || head === undefined) return false;
    const commit = decodeURIComponent(revision) === 'main' ? head : revision;
    const tree = commits.get(`${id} ${commit}`);
    if (tree === undefined) {
      response.writeHead(404, { 'x-error-code': 'RevisionNotFound' }).end();
      return true;
    }
    const entries = Object.entries(tree.files).map(([name, file]) => entryOf(name, file));
    const body =
      kind === 'revision' ? { sha: commit, siblings: [] } : [{ type: 'directory', path: 'onnx', oid: '0' }, ...entries];
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    return true;
  };

  const fileAt = (path: string): FakeFile | null => {
    const [, id, commit, name] = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/u.exec(path) ?? [];
    return commits.get(`${id ?? ''} ${commit ?? ''}`)?.files[decodeURIComponent(name ?? '')] ?? null;
  };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? '';
    const range = request.headers.range ?? null;
    requests.push({ target, range, authorization: request.headers.authorization ?? null });
    const path = new URL(target, 'http://hub').pathname;
    const file = fileAt(path);
    const fromByte = Number(/^bytes=(\d+)-$/u.exec(range ?? '')?.[1] ?? 0);
    const at = queued.findIndex(({ pathEnd }) => path.endsWith(pathEnd));
    const misbehaviour = queued[at];
    if (misbehaviour !== undefined) {
      if (!misbehaviour.isLasting) queued.splice(at, 1);
      await misbehaviour.misbehaviour({ request, response, file, fromByte });
    } else if (file !== null) {
      await sendFile(response, file, fromByte);
    } else if (!answerApi(response, path)) {
      // As the real one: whoever is not known is not told what does not exist.
      response
        .writeHead(request.headers.authorization === undefined ? 401 : 404, { 'x-error-code': 'RepoNotFound' })
        .end();
    }
  }

  const server = createServer((request, response) => {
    void answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const matching = (pathEnd: string) =>
    requests.filter(({ target }) => new URL(target, 'http://hub').pathname.endsWith(pathEnd));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    requests,
    put(id, files) {
      const names = Object.entries(files).map(([path, file]) => `${path} ${hashOf(file, 'sha1')}`);
      const commit = createHash('sha1').update(names.join('\n')).digest('hex');
      commits.set(`${id} ${commit}`, { files });
      heads.set(id, commit);
      return commit;
    },
    next(pathEnd, ...misbehaviours) {
      queued.push(...misbehaviours.map((misbehaviour) => ({ pathEnd, misbehaviour, isLasting: false })));
    },
    always(pathEnd, misbehaviour) {
      queued.push({ pathEnd, misbehaviour, isLasting: true });
    },
    asked: matching,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
