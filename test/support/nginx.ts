/** Owns running the real nginx with the example's configuration in front of servers of a test. */
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const example = readFileSync(fileURLToPath(new URL('../../examples/nginx/nginx.conf', import.meta.url)), 'utf8');
// Debian keeps it where only root looks.
const command = ['nginx', '/usr/sbin/nginx'].find((name) => spawnSync(name, ['-v']).status === 0);

/** Whether nginx can be run here. */
export const isNginxThere = command !== undefined;

/** Longest time until nginx listens. @unit ms */
const startTimeoutMs = 10_000;

/** A balancer that listens. */
export interface Balancer {
  readonly baseUrl: string;
  /** Replaces its servers by others while it runs; resolves when it was told, not when the last old worker is gone. */
  reload(ports: readonly number[]): void;
  /** Ends it and removes its folder. */
  end(): Promise<void>;
}

/**
 * The example with other addresses and nothing else.
 * @throws Error where the example no longer has the lines that are replaced
 */
export function configurationFor(listenPort: number, serverPorts: readonly number[]): string {
  const listen = /^( *)listen 127\.0\.0\.1:\d+;$/mu;
  const servers = /^(?: *server 127\.0\.0\.1:\d+ [^;\n]*;\n)+/mu;
  const options = / *server 127\.0\.0\.1:\d+ ([^;\n]*);/u.exec(example)?.[1];
  if (!listen.test(example) || options === undefined) throw new Error('the example has no line to listen or no server');
  return example
    .replace(listen, `$1listen 127.0.0.1:${listenPort};`)
    .replace(servers, serverPorts.map((port) => `    server 127.0.0.1:${port} ${options};\n`).join(''));
}

/** Starts nginx on a free port in front of servers of this machine. */
export async function startBalancer(serverPorts: readonly number[]): Promise<Balancer> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'));
  // Its workers are another user where the tests run as root.
  chmodSync(folder, 0o755);
  const port = await freePort();
  const write = (ports: readonly number[]) => {
    writeFileSync(join(folder, 'nginx.conf'), configurationFor(port, ports));
  };
  write(serverPorts);
  const args = ['-p', folder, '-c', 'nginx.conf'];
  const child = spawn(command ?? 'nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const killWithParent = () => child.kill('SIGTERM');
  process.once('exit', killWithParent);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const balancer: Balancer = {
    baseUrl: `http://127.0.0.1:${port}`,
    reload(ports) {
      write(ports);
      const told = spawnSync(command ?? 'nginx', [...args, '-s', 'reload'], { encoding: 'utf8' });
      if (told.status !== 0) throw new Error(told.stderr);
    },
    async end() {
      process.off('exit', killWithParent);
      child.kill('SIGTERM');
      await closed;
      rmSync(folder, { recursive: true });
    },
  };
  const endMs = performance.now() + startTimeoutMs;
  while (!(await isListening(port))) {
    if (child.exitCode === null && performance.now() < endMs) await sleep(20);
    else {
      await balancer.end();
      throw new Error(`nginx does not listen:\n${stderr}`);
    }
  }
  return balancer;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => {
        socket.destroy();
        resolve(true);
      })
      .once('error', () => resolve(false));
  });
}
