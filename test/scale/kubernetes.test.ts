import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { loadSettings } from '../../src/config/load.ts';
import { isKustomizeThere, quantityOf, renderManifests, type Manifest } from '../support/kustomize.ts';
import { metricNames } from '../support/metric-names.ts';
import { requirement } from '../support/require.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const tree = join(root, 'deploy/kubernetes');
const overlays = readdirSync(join(tree, 'overlays')).toSorted();
const kustomize = requirement('kustomize', isKustomizeThere, 'no kustomize command, or no Python with yaml');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

/** Time that `serve` gives itself beyond the drain before it ends whatever is left. @unit s */
const exitMarginSeconds = 10;

const rendered = new Map<string, readonly Manifest[]>();
const objectsOf = (overlay: string) => {
  const objects = rendered.get(overlay) ?? renderManifests(join(tree, 'overlays', overlay));
  rendered.set(overlay, objects);
  return objects;
};
const ofKind = (overlay: string, kind: string): Manifest[] =>
  objectsOf(overlay).filter((object: Manifest) => object.kind === kind);
const only = (overlay: string, kind: string): Manifest => {
  const found = ofKind(overlay, kind);
  expect(found, `${kind} in ${overlay}`).toHaveLength(1);
  return found[0];
};
const podOf = (overlay: string): Manifest => only(overlay, 'Deployment').spec.template;
const containerOf = (overlay: string): Manifest => {
  const { containers, initContainers = [] } = podOf(overlay).spec;
  expect([...containers, ...initContainers]).toHaveLength(1);
  return containers[0];
};
const configurationOf = (overlay: string): Record<string, string> => only(overlay, 'ConfigMap').data;
/** What is served where the cluster's variables are the environment. */
const settingsOf = (overlay: string) =>
  loadSettings({ flags: {}, environment: { ...configurationOf(overlay), TRIVEC_API_KEY: 'x' }, configFile: null });

const scratch: string[] = [];
afterAll(() => {
  for (const folder of scratch) rmSync(folder, { recursive: true });
});

/** Fields without which the API server refuses an object of the kind. */
const requiredFields: Record<string, { apiVersion: string; fields: readonly string[] }> = {
  ConfigMap: { apiVersion: 'v1', fields: ['data'] },
  Service: { apiVersion: 'v1', fields: ['spec.selector', 'spec.ports'] },
  Deployment: { apiVersion: 'apps/v1', fields: ['spec.selector.matchLabels', 'spec.template.spec.containers'] },
  PodDisruptionBudget: { apiVersion: 'policy/v1', fields: ['spec.selector.matchLabels', 'spec.maxUnavailable'] },
  HorizontalPodAutoscaler: {
    apiVersion: 'autoscaling/v2',
    fields: ['spec.scaleTargetRef.kind', 'spec.maxReplicas', 'spec.metrics'],
  },
  ScaledObject: { apiVersion: 'keda.sh/v1alpha1', fields: ['spec.scaleTargetRef.name', 'spec.triggers'] },
};
const at = (object: Manifest, path: string): unknown =>
  path.split('.').reduce((value: Manifest, key) => value?.[key], object);

describe.skipIf(kustomize.skip)(kustomize.title('the manifests for Kubernetes'), () => {
  it('have an overlay per device, and on each of them one per autoscaler', () => {
    expect(overlays).toEqual(['cpu', 'cpu-hpa', 'cpu-keda', 'gpu', 'gpu-hpa', 'gpu-keda']);
  });

  describe.each(overlays)('overlay %s', (overlay) => {
    it('renders objects of known kinds with the fields that their kind requires, each name once', () => {
      for (const object of objectsOf(overlay)) {
        const required = requiredFields[object.kind];
        expect(object.apiVersion, object.kind).toBe(required?.apiVersion);
        expect(object.metadata.name).toMatch(/^[a-z\d]([-a-z\d.]*[a-z\d])?$/u);
        for (const field of required?.fields ?? []) expect(at(object, field), `${object.kind} ${field}`).toBeDefined();
      }
      const names = objectsOf(overlay).map(({ kind, metadata }: Manifest) => `${kind}/${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
    });

    it('hands over settings that the server knows and accepts, from a ConfigMap that is there and from a Secret', () => {
      const { settings, warnings } = settingsOf(overlay);
      expect(warnings).toEqual([]);
      expect(settings.device).toEqual([overlay.startsWith('gpu') ? 'cuda' : 'cpu']);
      expect(Object.keys(configurationOf(overlay)).filter((name) => !name.startsWith('TRIVEC_'))).toEqual([]);
      const { envFrom, env = [] } = containerOf(overlay);
      expect(env).toEqual([]);
      expect(envFrom).toEqual([
        { configMapRef: { name: only(overlay, 'ConfigMap').metadata.name } },
        { secretRef: { name: 'trivec' } },
      ]);
      expect(ofKind(overlay, 'Secret')).toEqual([]);
      expect(podOf(overlay).spec.enableServiceLinks).toBe(false);
    });

    it('probes paths that the server answers, on the port that it listens on, as the Service does', () => {
      const container = containerOf(overlay);
      const { settings } = settingsOf(overlay);
      expect(container.ports).toEqual([{ name: 'http', containerPort: settings.port, protocol: 'TCP' }]);
      expect(settings.host).toBe('0.0.0.0');
      const app = readFileSync(join(root, 'src/http/app.ts'), 'utf8');
      const paths = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(({ httpGet }) => {
        expect(httpGet.port).toBe('http');
        expect(app).toContain(`route('${httpGet.path}'`);
        return httpGet.path;
      });
      expect(paths).toEqual(['/health/ready', '/health/live', '/health/ready']);
      const [port, ...others] = only(overlay, 'Service').spec.ports;
      expect(others).toEqual([]);
      expect(port.targetPort).toBe('http');
      const { annotations } = podOf(overlay).metadata;
      expect(annotations['prometheus.io/port']).toBe(String(settings.port));
      expect(app).toContain(`route('${annotations['prometheus.io/path']}'`);
      expect(settings.metricsOpen).toBe(true);
    });

    it('gives a pod more time to end than leaving the Service, the drain and the last seconds take together', () => {
      const { preStop } = containerOf(overlay).lifecycle;
      const [command, seconds] = preStop.exec.command;
      expect(command).toBe('sleep');
      const { drainMs } = settingsOf(overlay).settings;
      expect(podOf(overlay).spec.terminationGracePeriodSeconds).toBeGreaterThan(
        Number(seconds) + drainMs / 1000 + exitMarginSeconds,
      );
    });

    it('has no root: not as user, not by privilege, not in its files, not in the cluster', () => {
      const { spec } = podOf(overlay);
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      const [uid, gid] = /^USER (\d+):(\d+)$/mu.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))?.slice(1) ?? [];
      expect(spec.securityContext.runAsUser).toBe(Number(uid));
      expect(spec.securityContext.runAsGroup).toBe(Number(gid));
      expect(Number(uid)).toBeGreaterThan(0);
      expect(spec.automountServiceAccountToken).toBe(false);
      expect(containerOf(overlay).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    });

    it('writes to volumes of its own only, among them the cache of the settings', () => {
      const { volumes } = podOf(overlay).spec;
      const mounts = containerOf(overlay).volumeMounts;
      expect(mounts.map(({ mountPath }: Manifest) => mountPath)).toEqual([
        settingsOf(overlay).settings.cacheDir,
        '/tmp',
      ]);
      expect(mounts.map(({ name }: Manifest) => name)).toEqual(volumes.map(({ name }: Manifest) => name));
      for (const { emptyDir } of volumes) expect(quantityOf(emptyDir.sizeLimit)).toBeGreaterThan(0);
    });

    it('runs the image of this version', () => {
      const { image } = containerOf(overlay);
      expect(image).toBe(`trivec:${version}-${overlay.startsWith('gpu') ? 'cuda' : 'cpu'}`);
    });

    it('asks for what it is limited to, so that its cores are its own, and for one GPU where it runs on one', () => {
      const { requests, limits } = containerOf(overlay).resources;
      expect(limits.cpu).toBe(requests.cpu);
      expect(limits.memory).toBe(requests.memory);
      expect(quantityOf(limits.cpu) % 1).toBe(0);
      expect(quantityOf(limits.memory)).toBeGreaterThanOrEqual(2 ** 30);
      expect(limits['nvidia.com/gpu']).toBe(overlay.startsWith('gpu') ? '1' : undefined);
    });

    it('selects its own pods: the Deployment, the Service, the budget and the spread alike', () => {
      const { labels } = podOf(overlay).metadata;
      const selectors = [
        only(overlay, 'Deployment').spec.selector.matchLabels,
        only(overlay, 'Service').spec.selector,
        only(overlay, 'PodDisruptionBudget').spec.selector.matchLabels,
        ...podOf(overlay).spec.topologySpreadConstraints.map(
          ({ labelSelector }: Manifest) => labelSelector.matchLabels,
        ),
      ];
      expect(selectors).toHaveLength(5);
      for (const selector of selectors) {
        expect(Object.keys(selector).length).toBeGreaterThan(0);
        expect(labels).toMatchObject(selector);
      }
    });

    it('has the autoscaler of its name and no other, which alone says how many pods there are', () => {
      const deployment = only(overlay, 'Deployment');
      const scalers = objectsOf(overlay).filter(({ spec }: Manifest) => spec?.scaleTargetRef !== undefined);
      const wanted = { hpa: ['HorizontalPodAutoscaler'], keda: ['ScaledObject'] }[overlay.split('-')[1] ?? ''] ?? [];
      expect(scalers.map(({ kind }: Manifest) => kind)).toEqual(wanted);
      if (wanted.length === 0) expect(deployment.spec.replicas).toBeGreaterThanOrEqual(2);
      else expect(deployment.spec.replicas).toBeUndefined();
      for (const { spec } of scalers) {
        expect(spec.scaleTargetRef).toEqual({
          apiVersion: deployment.apiVersion,
          kind: deployment.kind,
          name: deployment.metadata.name,
        });
        const [least, most] = [spec.minReplicas ?? spec.minReplicaCount, spec.maxReplicas ?? spec.maxReplicaCount];
        expect(least).toBeGreaterThanOrEqual(2);
        expect(most).toBeGreaterThan(least);
      }
    });
  });

  it.each(['cpu', 'gpu'])('the autoscalers of %s read a gauge of the server and have one target', (device) => {
    const [{ type, pods }] = only(`${device}-hpa`, 'HorizontalPodAutoscaler').spec.metrics;
    expect(type).toBe('Pods');
    expect(metricNames()).toContain(pods.metric.name);
    expect(pods.target.type).toBe('AverageValue');
    const [trigger, ...others] = only(`${device}-keda`, 'ScaledObject').spec.triggers;
    expect(others).toEqual([]);
    expect(trigger.type).toBe('prometheus');
    expect(trigger.metricType).toBe('AverageValue');
    const named = [...String(trigger.metadata.query).matchAll(/\btrivec_\w+/gu)].map(([name]) => name);
    expect(named).toEqual([pods.metric.name]);
    expect(trigger.metadata.threshold).toBe(pods.target.averageValue);
    const { deadlineMs } = settingsOf(`${device}-hpa`).settings;
    expect(quantityOf(pods.target.averageValue) * 1000).toBeLessThan(deadlineMs / 2);
  });

  it('a server whose deployment takes both autoscalers is not built', () => {
    const folder = mkdtempSync(join(tmpdir(), 'kubernetes-'));
    scratch.push(folder);
    cpSync(tree, folder, { recursive: true });
    mkdirSync(join(folder, 'overlays/both'));
    const components = ['hpa', 'keda'].map((name) => `  - ../../components/${name}\n`).join('');
    const head = 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n';
    writeFileSync(
      join(folder, 'overlays/both/kustomization.yaml'),
      `${head}resources:\n  - ../cpu\ncomponents:\n${components}`,
    );
    expect(() => renderManifests(join(folder, 'overlays/both'))).toThrow(/replicas/u);
    rmSync(join(folder, 'overlays/both'), { recursive: true });
    expect(renderManifests(join(folder, 'overlays/cpu-keda')).length).toBeGreaterThan(0);
  });

  it('a suffix on all names reaches the target of the ScaledObject', () => {
    const folder = mkdtempSync(join(tmpdir(), 'kubernetes-'));
    scratch.push(folder);
    cpSync(tree, folder, { recursive: true });
    mkdirSync(join(folder, 'overlays/mine'));
    writeFileSync(
      join(folder, 'overlays/mine/kustomization.yaml'),
      'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnameSuffix: -mine\nresources:\n  - ../gpu-keda\n',
    );
    const objects = renderManifests(join(folder, 'overlays/mine'));
    const named = (kind: string) => objects.find((object: Manifest) => object.kind === kind);
    expect(named('ScaledObject').spec.scaleTargetRef.name).toBe('trivec-mine');
    expect(named('Deployment').metadata.name).toBe('trivec-mine');
  });
});
