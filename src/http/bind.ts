/** Owns taking an address: a port, or a path for a Unix socket that nobody else answers on. */
import { chmodSync, existsSync, lstatSync, unlinkSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { connect } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { dirname } from 'node:path';
import { ConfigurationError } from '../errors.ts';

/** Where a listener can be. */
export type Endpoint =
  | {
      readonly kind: 'tcp';
      readonly host: string;
      /** 0 takes a free port. */
      readonly port: number;
    }
  | {
      readonly kind: 'unix';
      readonly path: string;
      /** File mode: who may connect. */
      readonly mode: number;
    };

/** An address that was taken. */
export interface Bound {
  /** 0 for a Unix socket. */
  readonly port: number;
  /** Such as `127.0.0.1:8000`; a path for a Unix socket. */
  readonly address: string;
  /** Forgets the address; call it when the server is closed. */
  release(): void;
}

const bindFaults: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is already in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'the address does not belong to this machine',
  ENOTFOUND: 'the host name is unknown',
  EROFS: 'the file system is read-only',
};

/**
 * Takes the address.
 * @throws ConfigurationError that names it
 */
export async function bind(server: Server, endpoint: Endpoint): Promise<Bound> {
  const name = endpoint.kind === 'unix' ? `unix:${endpoint.path}` : addressOf(endpoint.host, endpoint.port);
  try {
    return endpoint.kind === 'unix' ? await bindPath(server, endpoint) : await bindPort(server, endpoint);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new ConfigurationError([`cannot listen on ${name}: ${bindFaults[code ?? ''] ?? message}`]);
  }
}

const addressOf = (host: string, port: number) => `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;

async function bindPort(server: Server, { host, port }: { host: string; port: number }): Promise<Bound> {
  await listening(server, () => server.listen({ port, host }));
  const bound = server.address() as AddressInfo;
  return { port: bound.port, address: addressOf(host, bound.port), release: () => undefined };
}

async function bindPath(server: Server, { path, mode }: { path: string; mode: number }): Promise<Bound> {
  // What the system says to this is that permission is denied.
  if (!existsSync(dirname(path))) throw new Error('there is no such folder');
  await removeStaleSocket(path);
  await listening(server, () => {
    // The socket comes into being with the mode that the mask leaves: nobody else connects before its own is set.
    const mask = process.umask(ownerOnlyMask);
    try {
      server.listen({ path });
    } finally {
      process.umask(mask);
    }
    if (lookAt(path)?.isSocket() === true) chmodSync(path, mode);
  });
  const inode = lookAt(path)?.ino;
  const onExit = () => {
    if (inode !== undefined && lookAt(path)?.ino === inode) unlinkSync(path);
  };
  process.once('exit', onExit);
  return {
    port: 0,
    address: path,
    // Closing the server has removed the socket.
    release: () => {
      process.off('exit', onExit);
    },
  };
}

const ownerOnlyMask = 0o177;

function listening(server: Server, start: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    start();
  });
}

const lookAt = (path: string): BigIntStats | undefined => lstatSync(path, { bigint: true, throwIfNoEntry: false });

/** Removes a socket that its process left behind; whatever else is at the path stays, and binding fails. */
async function removeStaleSocket(path: string): Promise<void> {
  const found = lookAt(path);
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error('something that is no socket is at this path');
  if ((await connectionFault(path)) !== 'ECONNREFUSED') return;
  // Another start may have replaced it meanwhile.
  if (lookAt(path)?.ino === found.ino) unlinkSync(path);
}

/** The code of the error that connecting ends with; null where somebody answers. */
function connectionFault(path: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(null);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code ?? 'unknown');
    });
  });
}
