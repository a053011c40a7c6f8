import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { variableOf } from '../../../src/config/names.ts';
import { settingsSchema } from '../../../src/config/settings.ts';
import { startDockerEngine } from '../../support/docker-engine.ts';
import type { DockerEngine } from '../../support/docker-engine.ts';
import { requirement } from '../../support/require.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const isComposeThere = spawnSync('docker-compose', ['version']).status === 0;
const compose = requirement('compose', isComposeThere, 'no docker-compose command');
const maxDrainMs = settingsSchema.parse({}).drainMs;

let engine: DockerEngine;
beforeEach(async () => {
  engine = await startDockerEngine();
});
afterEach(() => {
  engine.close();
});

/** Runs Compose as a user would in a fresh checkout, against the remembering engine. */
async function up(flags: readonly string[], environment: Record<string, string> = {}) {
  const child = spawn('docker-compose', [...flags, 'up', '-d'], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', DOCKER_HOST: engine.address, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(code, errors).toBe(0);
  return engine.created;
}

const services = () => engine.created.map((container) => container.Labels['com.docker.compose.service']);

describe.skipIf(compose.skip)(compose.title('docker compose'), () => {
  it('`up` creates the GPU server and nothing else', async () => {
    const [container] = await up([]);
    expect(services()).toEqual(['cuda']);
    expect(container?.HostConfig.DeviceRequests).toMatchObject([{ Driver: 'nvidia', Capabilities: [['gpu']] }]);
  });

  it('`--profile cpu up` creates the CPU server alone, without a GPU, though .env names the other profile', async () => {
    const [container] = await up(['--profile', 'cpu']);
    expect(services()).toEqual(['cpu']);
    expect(container?.HostConfig.DeviceRequests ?? []).toEqual([]);
  });

  it.each(['cuda', 'cpu'])(
    'the %s server has no root: not as user, not by capability, not in its files',
    async (profile) => {
      const [container] = await up(['--profile', profile]);
      expect(container?.User).toBe('10001:10001');
      expect(container?.HostConfig).toMatchObject({
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges:true'],
        Init: true,
        RestartPolicy: { Name: 'unless-stopped' },
      });
      expect(Object.keys(container?.HostConfig.Tmpfs ?? {})).toEqual(['/tmp']);
    },
  );

  it.each(['cuda', 'cpu'])('the %s server keeps further models and the cache in named volumes', async (profile) => {
    const [container] = await up(['--profile', profile], { COMPOSE_PROJECT_NAME: 'demo' });
    expect(container?.HostConfig.Binds.toSorted()).toEqual([
      'demo_cache:/var/cache/trivec:rw',
      'demo_models:/models-data:rw',
    ]);
  });

  it.each(['cuda', 'cpu'])('the %s server is checked by the image’s own health check', async (profile) => {
    const [container] = await up(['--profile', profile]);
    expect(container?.Healthcheck?.Test).toEqual(['CMD', 'node', '/app/health.js']);
  });

  it('the port is published on loopback unless PUBLISH_ADDRESS says otherwise', async () => {
    await up([]);
    await up([], { PUBLISH_ADDRESS: '0.0.0.0:9000' });
    expect(engine.created.map((container) => container.HostConfig.PortBindings['8000/tcp'])).toEqual([
      [{ HostIp: '127.0.0.1', HostPort: '8000' }],
      [{ HostIp: '0.0.0.0', HostPort: '9000' }],
    ]);
  });

  it('a setting reaches the server where it is set, and is absent, not empty, where it is not', async () => {
    await up([]);
    await up([], { TRIVEC_API_KEY: 'secret' });
    expect(engine.created[0]?.Env).toContain('TRIVEC_MODELS_DIR=/app/models');
    expect(engine.created[0]?.Env?.filter((entry) => entry.startsWith('TRIVEC_API_KEY='))).toEqual([]);
    expect(engine.created[1]?.Env).toContain('TRIVEC_API_KEY=secret');
  });

  it('hands over only variables that are settings', async () => {
    const settings = Object.keys(settingsSchema.shape).map(variableOf);
    const [container] = await up(['--profile', 'cpu']);
    const names = (container?.Env ?? []).map((entry) => entry.split('=')[0] ?? '');
    expect(names).toContain('TRIVEC_API_KEY');
    expect(settings).toEqual(expect.arrayContaining(names));
  });

  it('the engine waits longer for the end than a drain may take', async () => {
    const [container] = await up([]);
    expect((container?.StopTimeout ?? 0) * 1000).toBeGreaterThan(maxDrainMs);
  });

  it('`--profile cpu --profile observability up` adds Prometheus, Grafana and a collector, each of a stated version', async () => {
    await up(['--profile', 'cpu', '--profile', 'observability']);
    expect(services().toSorted()).toEqual(['cpu', 'grafana', 'otel-collector', 'prometheus']);
    const observers = engine.created.filter(({ Image }) => Image !== 'trivec:cpu');
    expect(observers).toHaveLength(3);
    for (const { Image, User, HostConfig } of observers) {
      expect(Image).toMatch(/:v?\d+\.\d+\.\d+$/);
      expect(User).not.toMatch(/^(0|root)?(:|$)/);
      expect(HostConfig).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'] });
      expect(
        Object.values(HostConfig.PortBindings)
          .flat()
          .map(({ HostIp }) => HostIp),
      ).not.toContain('0.0.0.0');
    }
  });

  it('every file that Prometheus, Grafana and the collector read is in the repository', async () => {
    await up(['--profile', 'observability']);
    const sources = engine.created.flatMap(({ HostConfig }) =>
      HostConfig.Binds.map((bind) => bind.split(':')[0] ?? ''),
    );
    const files = sources.filter((source) => source.startsWith('/'));
    expect(files).toHaveLength(5);
    for (const file of files) expect(existsSync(file), file).toBe(true);
  });

  it('Prometheus looks for the servers under the names that they have here', async () => {
    const text = readFileSync(`${root}/deploy/observability/prometheus.yml`, 'utf8');
    const names = /names: \[([^\]]+)\]/.exec(text)?.[1]?.split(', ') ?? [];
    await up(['--profile', 'cpu', '--profile', 'cuda']);
    expect(names.toSorted()).toEqual(services().toSorted());
  });
});
