import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readHubSettings } from '../../../src/config/hub.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { variableOf } from '../../../src/config/names.ts';
import { settingsSchema } from '../../../src/config/settings.ts';
import { startDockerEngine } from '../../support/docker-engine.ts';
import type { DockerEngine } from '../../support/docker-engine.ts';
import { requirement } from '../../support/require.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const isComposeThere = spawnSync('docker-compose', ['version']).status === 0;
const composeIsThere = requirement('compose', isComposeThere, 'no docker-compose command');
const composeFile = `${root}/docker-compose.yml`;
const maxDrainMs = settingsSchema.parse({}).drainMs;

let engine: DockerEngine;
beforeEach(async () => {
  engine = await startDockerEngine();
});
afterEach(() => {
  engine.close();
});

/** Runs Compose as a user would in a fresh checkout, or in another folder, against the remembering engine. */
async function compose(words: readonly string[], environment: Record<string, string> = {}, folder = root) {
  const child = spawn('docker-compose', words, {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: '/nonexistent', DOCKER_HOST: engine.address, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(code, errors).toBe(0);
  return engine.created;
}

const up = (flags: readonly string[], environment: Record<string, string> = {}, folder = root) =>
  compose([...flags, 'up', '-d'], environment, folder);

/** Settings that a container has from the image or from this file, and what belongs to stdio: others would not work. */
const fixedSettings = ['host', 'port', 'stdio', 'maxInFlightFrames', 'socket', 'socketMode', 'cacheDir', 'drainMs'];
/** What the hub's tools share, as `config/hub.ts` reads it. */
const hubVariables = ['HF_HOME', 'HF_TOKEN', 'HF_ENDPOINT', 'HF_HUB_OFFLINE'];
const variables = () => (engine.created[0]?.Env ?? []).map((entry) => entry.split('=')[0] ?? '');

const services = () => engine.created.map((container) => container.Labels['com.docker.compose.service']);

describe.skipIf(composeIsThere.skip)(composeIsThere.title('docker compose'), () => {
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
    expect(engine.created[0]?.Env?.filter((entry) => entry.startsWith('TRIVEC_API_KEY='))).toEqual([]);
    expect(engine.created[1]?.Env).toContain('TRIVEC_API_KEY=secret');
  });

  it.each(['cuda', 'cpu'])(
    'the %s server gets every setting but those that its container fixes, and what the hub needs',
    async (profile) => {
      const settings = Object.keys(settingsSchema.shape);
      expect(settings).toEqual(expect.arrayContaining(fixedSettings));
      await up(['--profile', profile]);
      const open = settings.filter((key) => !fixedSettings.includes(key)).map(variableOf);
      expect(variables().toSorted()).toEqual([...open, ...hubVariables].toSorted());
    },
  );

  it('a setting that is there and empty has its default', async () => {
    await up([]);
    const empty = Object.fromEntries(variables().map((name) => [name, '']));
    const load = (environment: Record<string, string>) =>
      loadSettings({ flags: {}, environment, configFile: null }).settings;
    expect(load(empty)).toEqual(load({}));
    // The place of the cache is fixed, see below.
    expect(readHubSettings(empty)).toEqual(readHubSettings({}));
  });

  it('.env sets models and devices', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'compose-'));
    try {
      copyFileSync(composeFile, join(folder, 'docker-compose.yml'));
      const lines = ['TRIVEC_EMBED_MODEL=/models-data/mine', 'TRIVEC_SPARSE_MODEL=none', 'TRIVEC_DEVICE=cuda:1'];
      writeFileSync(join(folder, '.env'), ['COMPOSE_PROFILES=cuda', ...lines, ''].join('\n'));
      const [container] = await up([], {}, folder);
      expect(container?.Env).toEqual(expect.arrayContaining(lines));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('the hub’s cache lies in a volume that stays', async () => {
    const [container] = await up([]);
    const { cacheDir } = readHubSettings(Object.fromEntries((container?.Env ?? []).map((entry) => entry.split('='))));
    const places = (container?.HostConfig.Binds ?? []).map((bind) => bind.split(':')[1] ?? '');
    expect(places.filter((place) => cacheDir.startsWith(`${place}/`))).toEqual(['/models-data']);
  });

  it('its commands that bring models write into the volume from which .env names them', async () => {
    const text = readFileSync(composeFile, 'utf8');
    const commands = [...text.matchAll(/^# +docker compose (--profile cpu run --rm .*)$/gm)].map(([, words]) => words);
    expect(commands).toHaveLength(2);
    for (const words of commands) {
      // Nobody is attached to an engine that runs nothing.
      const detached = words?.replace('--rm', '-d').replaceAll('"', '').replace('$PWD', '/home/me') ?? '';
      await compose(detached.split(' '), { COMPOSE_PROJECT_NAME: 'demo' });
    }
    const [copying, pulling] = engine.created;
    for (const container of [copying, pulling]) {
      expect(container?.User).toBe('10001:10001');
      expect(container?.HostConfig.Binds).toContain('demo_models:/models-data:rw');
    }
    expect(copying?.HostConfig.Binds).toContain('/home/me/my-model:/from:ro');
    const target = copying?.Cmd?.at(-1) ?? '';
    expect([...(copying?.Entrypoint ?? []), ...(copying?.Cmd ?? [])]).toEqual(['cp', '-r', '/from', target]);
    expect(text).toContain(`TRIVEC_EMBED_MODEL=${target}\n`);
    expect(pulling?.Cmd).toEqual(['models', 'pull', 'org/name']);
    expect(pulling?.Env).toContain('HF_HOME=/models-data/huggingface');
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
