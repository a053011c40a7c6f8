/** Owns a Docker engine that creates nothing: it answers Compose on a socket and remembers what it was asked to create. */
import { createServer } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The body of a `POST /containers/create`, as far as tests read it. */
export interface CreatedContainer {
  readonly Image: string;
  readonly User?: string;
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly Healthcheck?: { readonly Test: readonly string[] };
  readonly StopTimeout?: number;
  readonly Labels: Readonly<Record<string, string>>;
  readonly HostConfig: {
    readonly Init?: boolean;
    readonly ReadonlyRootfs?: boolean;
    readonly CapDrop?: readonly string[];
    readonly SecurityOpt?: readonly string[];
    readonly Tmpfs?: Readonly<Record<string, string>>;
    readonly RestartPolicy?: { readonly Name: string };
    readonly DeviceRequests?: readonly { readonly Driver: string; readonly Capabilities: readonly string[][] }[];
    readonly PortBindings: Readonly<Record<string, readonly { readonly HostIp: string; readonly HostPort: string }[]>>;
    readonly Binds: readonly string[];
  };
}

/** A listening engine. */
export interface DockerEngine {
  /** Value for `DOCKER_HOST`. */
  readonly address: string;
  readonly created: readonly CreatedContainer[];
  close(): void;
}

const containerReport = (id: string, created: CreatedContainer) => ({
  Id: id,
  Name: `/${id}`,
  Image: 'sha256:1',
  Config: { ...created, Tty: false },
  HostConfig: created.HostConfig,
  State: { Running: true, Status: 'running' },
  NetworkSettings: { Networks: {} },
  Mounts: [],
});

/** An engine in which every image exists and nothing else does. */
export async function startDockerEngine(): Promise<DockerEngine> {
  const created: CreatedContainer[] = [];
  const answer = (method: string, path: string, body: string): [status: number, value: unknown] => {
    if (path === '/version') return [200, { ApiVersion: '1.41', MinAPIVersion: '1.12', Version: '20.10.24' }];
    if (path.startsWith('/images/')) return [200, { Id: 'sha256:1', Config: {}, ContainerConfig: {} }];
    if (path.startsWith('/containers/json')) return [200, []];
    if (path.startsWith('/containers/create')) {
      created.push(JSON.parse(body) as CreatedContainer);
      return [201, { Id: `container${created.length - 1}` }];
    }
    const container = /^\/containers\/container(\d+)\/json/.exec(path);
    if (container !== null) {
      const index = Number(container[1]);
      return [200, containerReport(`container${index}`, created[index]!)];
    }
    if (method === 'GET' && /^\/(networks|volumes)\//.test(path)) return [404, { message: 'not found' }];
    return [method === 'POST' ? 201 : 200, { Id: 'created', Name: 'created' }];
  };

  const folder = mkdtempSync(join(tmpdir(), 'engine-'));
  const socketPath = join(folder, 'docker.sock');
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = (request.url ?? '').replace(/^\/v[\d.]+/, '');
      const [status, value] = answer(request.method ?? '', path, Buffer.concat(chunks).toString());
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    address: `unix://${socketPath}`,
    created,
    close() {
      server.closeAllConnections();
      server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
