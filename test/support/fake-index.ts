/** Owns a Python package index on loopback, which answers as badly as a test asks for. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileOf, sendFile } from './fake-hub.ts';
import type { Misbehaviour, SeenRequest } from './fake-hub.ts';

/** A file that a project of the index has. */
export interface IndexedFile {
  readonly project: string;
  readonly file: string;
  readonly content: Buffer;
}

/** An index on loopback. Its files lie on the same server under another host name, as those of the public one do. */
export interface FakeIndex {
  /** Its address, for `PIP_INDEX_URL`. */
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  put(...files: readonly IndexedFile[]): void;
  /** Answers with a page of links, as old mirrors do. */
  speakHtml(): void;
  /** Answers the next requests whose path ends so with these misbehaviours, in order. */
  next(pathEnd: string, ...misbehaviours: readonly Misbehaviour[]): void;
  always(pathEnd: string, misbehaviour: Misbehaviour): void;
  /** Requests for a path that ends so. */
  asked(pathEnd: string): SeenRequest[];
  close(): Promise<void>;
}

const pathOf = (target: string): string => decodeURIComponent(new URL(target, 'http://index').pathname);

/** Starts an index. */
export async function createFakeIndex(): Promise<FakeIndex> {
  const files: IndexedFile[] = [];
  const requests: SeenRequest[] = [];
  const queued: { readonly pathEnd: string; readonly misbehaviour: Misbehaviour; readonly isLasting: boolean }[] = [];
  let isHtml = false;
  let port = 0;

  function answerPage(response: ServerResponse, project: string): void {
    const listed = files.filter((file) => file.project === project);
    if (listed.length === 0) {
      response.writeHead(404).end('no such project');
      return;
    }
    const entries = listed.map(({ file, content }) => ({
      filename: file,
      url: `http://localhost:${String(port)}/packages/${encodeURIComponent(file)}`,
      hashes: { sha256: createHash('sha256').update(content).digest('hex') },
    }));
    if (isHtml) {
      const links = entries.map(({ filename, hashes }) => {
        const href = `../../packages/${encodeURIComponent(filename)}#sha256=${hashes.sha256}`;
        return `<a class="x" href="${href}">${filename}</a><br/>`;
      });
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(`<html>${links.join('\n')}</html>`);
    } else {
      response
        .writeHead(200, { 'content-type': 'application/vnd.pypi.simple.v1+json' })
        .end(JSON.stringify({ meta: { 'api-version': '1.1' }, name: project, files: entries }));
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? '';
    const range = request.headers.range ?? null;
    requests.push({ target, range, authorization: request.headers.authorization ?? null });
    const path = pathOf(target);
    const [, name] = /^\/packages\/(.+)$/u.exec(path) ?? [];
    const found = files.find(({ file }) => file === name);
    const file = found === undefined ? null : fileOf(found.content);
    const fromByte = Number(/^bytes=(\d+)-$/u.exec(range ?? '')?.[1] ?? 0);
    const at = queued.findIndex(({ pathEnd }) => path.endsWith(pathEnd));
    const misbehaviour = queued[at];
    if (misbehaviour !== undefined) {
      if (!misbehaviour.isLasting) queued.splice(at, 1);
      await misbehaviour.misbehaviour({ request, response, file, fromByte });
    } else if (file !== null) {
      await sendFile(response, file, fromByte);
    } else {
      answerPage(response, /^\/simple\/([^/]+)\/$/u.exec(path)?.[1] ?? '');
    }
  }

  const server = createServer((request, response) => {
    void answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
  return {
    url: `http://127.0.0.1:${String(port)}/simple`,
    requests,
    put(...more) {
      files.push(...more);
    },
    speakHtml() {
      isHtml = true;
    },
    next(pathEnd, ...misbehaviours) {
      queued.push(...misbehaviours.map((misbehaviour) => ({ pathEnd, misbehaviour, isLasting: false })));
    },
    always(pathEnd, misbehaviour) {
      queued.push({ pathEnd, misbehaviour, isLasting: true });
    },
    asked: (pathEnd) => requests.filter(({ target }) => pathOf(target).endsWith(pathEnd)),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
