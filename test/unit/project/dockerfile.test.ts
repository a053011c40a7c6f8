import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { variableOf } from '../../../src/config/names.ts';
import { settingsSchema } from '../../../src/config/settings.ts';
import { makeCertificate, needsOpenssl } from '../../support/certificates.ts';
import { argumentsOf, environmentOf, instructionsOf, parseDockerfile } from '../../support/dockerfile.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');
const stages = parseDockerfile(textOf('Dockerfile'));
const admittedByDockerignore = textOf('.dockerignore')
  .split('\n')
  .filter((line) => line.startsWith('!'))
  .map((line) => line.slice(1));

/** Paths of the checkout that a stage copies. */
const copiedPaths = stages
  .flatMap((stage) => argumentsOf(stage.instructions, 'COPY'))
  .filter((argument) => !argument.includes('--from='))
  .flatMap((argument) => argument.split(/\s+/).slice(0, -1));

describe.each(['cpu', 'cuda'])('the image %s', (target) => {
  const instructions = instructionsOf(stages, target);

  it('runs as a numeric user that is not root', () => {
    expect(argumentsOf(instructions, 'USER').at(-1)).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it('starts node without a shell in between, so that SIGTERM reaches it', () => {
    expect(JSON.parse(argumentsOf(instructions, 'ENTRYPOINT').at(-1) ?? '')).toEqual(['node', '/app/dist/main.js']);
    expect(JSON.parse(argumentsOf(instructions, 'CMD').at(-1) ?? '')).toEqual(['serve']);
    expect(argumentsOf(instructions, 'STOPSIGNAL')).toEqual(['SIGTERM']);
  });

  it('listens where a container can be reached, keeps its cache in the volume, and sends no telemetry', () => {
    expect(environmentOf(instructions)).toMatchObject({
      ORT_DISABLE_TELEMETRY: '1',
      TRIVEC_HOST: '0.0.0.0',
      TRIVEC_PORT: '8000',
      TRIVEC_CACHE_DIR: '/var/cache/trivec',
    });
    expect(environmentOf(instructions)).not.toHaveProperty('TRIVEC_MODELS_DIR');
  });

  it('sets no TRIVEC_ variable that is not a setting', () => {
    const settings = Object.keys(settingsSchema.shape).map(variableOf);
    const names = Object.keys(environmentOf(instructions)).filter((name) => name.startsWith('TRIVEC_'));
    expect(settings).toEqual(expect.arrayContaining(names));
  });

  it('claims the execution providers that it holds, and no other', () => {
    const holdsCuda = argumentsOf(instructions, 'COPY').includes('--from=cuda-libraries /app/cuda cuda');
    const claimed = /trivec\.execution-providers="([^"]+)"/.exec(argumentsOf(instructions, 'LABEL').join(' '))?.[1];
    expect(claimed).toBe(holdsCuda ? 'cuda,cpu' : 'cpu');
    expect(holdsCuda).toBe(target === 'cuda');
  });
});

describe('the Dockerfile', () => {
  it('only the CUDA image asks the container runtime for a GPU', () => {
    expect(environmentOf(instructionsOf(stages, 'cuda'))).toHaveProperty('NVIDIA_VISIBLE_DEVICES', 'all');
    expect(environmentOf(instructionsOf(stages, 'cpu'))).not.toHaveProperty('NVIDIA_VISIBLE_DEVICES');
  });

  it('the libraries of CUDA come by the program’s own command, into the program’s own folder', () => {
    const [command] = argumentsOf(stages.find(({ name }) => name === 'cuda-libraries')?.instructions ?? [], 'RUN');
    expect(command).toBe('node dist/main.js devices install-cuda --cache-dir /app');
    expect(argumentsOf(instructionsOf(stages, 'build'), 'WORKDIR')).toEqual(['/app']);
  });

  it('every stage stands on one base image', () => {
    const names = stages.map((stage) => stage.name);
    const bases = stages.map((stage) => stage.base).filter((base) => !names.includes(base));
    expect([...new Set(bases)]).toEqual(['node:24-bookworm-slim']);
  });

  it('every file that it copies exists and is let through by .dockerignore', () => {
    for (const path of copiedPaths) {
      expect(existsSync(join(root, path)), path).toBe(true);
      expect(admittedByDockerignore, path).toContain(path.split('/')[0]);
    }
  });

  it('nothing reaches the builder that no stage copies', () => {
    expect(textOf('.dockerignore')).toMatch(/^\*$/m);
    for (const path of admittedByDockerignore) {
      expect(
        copiedPaths.some((copied) => copied.split('/')[0] === path),
        path,
      ).toBe(true);
    }
  });

  it('runs only npm scripts that package.json has', () => {
    const scripts = Object.keys((JSON.parse(textOf('package.json')) as { scripts: object }).scripts);
    const called = [...textOf('Dockerfile').matchAll(/npm run ([\w:]+)/g)].map((match) => match[1]);
    expect(called.length).toBeGreaterThan(0);
    expect(scripts).toEqual(expect.arrayContaining(called));
  });
});

describe('the health check', () => {
  const checkWith = async (variables: Record<string, string>) => {
    const child = spawn(process.execPath, [join(root, 'scripts/docker/health.js')], {
      env: { ...process.env, ...variables },
      stdio: 'ignore',
    });
    return new Promise((resolve) => child.on('close', resolve));
  };
  const check = (port: number) => checkWith({ TRIVEC_PORT: String(port) });

  it.each([
    [200, 0],
    [503, 1],
  ])('where /health/ready answers %i it exits %i', async (status, code) => {
    const server = createServer((request, response) => {
      response.writeHead(request.url === '/health/ready' ? status : 404).end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      expect(await check((server.address() as AddressInfo).port)).toBe(code);
    } finally {
      server.close();
    }
  });

  it.each([
    [200, 0],
    [503, 1],
  ])('on a Unix socket that answers %i it exits %i', async (status, code) => {
    const folder = mkdtempSync(join(tmpdir(), 'health-'));
    const path = join(folder, 'trivec.sock');
    const server = createServer((_, response) => response.writeHead(status).end('{}'));
    await new Promise<void>((resolve) => server.listen(path, resolve));
    try {
      expect(await checkWith({ TRIVEC_SOCKET: path, TRIVEC_PORT: '1' })).toBe(code);
    } finally {
      server.close();
      rmSync(folder, { recursive: true });
    }
  });

  it.skipIf(needsOpenssl.skip)(
    needsOpenssl.title('over TLS it takes whatever certificate the server has'),
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'health-'));
      const { certFile, keyFile } = makeCertificate(folder, 'elsewhere.example');
      const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
      const server = createSecureServer(pair, (_, response) => response.writeHead(200).end('{}'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      try {
        const { port } = server.address() as AddressInfo;
        expect(await checkWith({ TRIVEC_PORT: String(port), TRIVEC_TLS_CERT: certFile })).toBe(0);
        expect(await check(port)).toBe(1);
      } finally {
        server.close();
        rmSync(folder, { recursive: true });
      }
    },
  );

  it('where nobody listens it exits 1', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect(await check(port)).toBe(1);
  });
});

describe('pruning the engine’s binaries', () => {
  const prune = join(root, 'scripts/docker/prune.sh');
  const here = `${process.platform}/${process.arch}`;
  let folder: string;
  const binaries = () => join(folder, 'onnxruntime-node/bin/napi-v6');
  const add = (platform: string) => {
    mkdirSync(join(binaries(), platform), { recursive: true });
    writeFileSync(join(binaries(), platform, 'binding.node'), '');
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'prune-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it('leaves this platform’s and nothing else', () => {
    for (const platform of [here, `${process.platform}/other`, 'plan9/x64']) add(platform);
    expect(spawnSync('sh', [prune, folder]).status).toBe(0);
    const left = readdirSync(binaries(), { recursive: true, encoding: 'utf8' });
    expect(left.toSorted()).toEqual([process.platform, here, `${here}/binding.node`]);
  });

  it('fails and deletes nothing where this platform’s are not where they are expected', () => {
    add('plan9/x64');
    expect(spawnSync('sh', [prune, folder]).status).toBe(1);
    expect(existsSync(join(binaries(), 'plan9/x64/binding.node'))).toBe(true);
  });
});
