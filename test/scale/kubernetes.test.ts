import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
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
  PersistentVolumeClaim: { apiVersion: 'v1', fields: ['spec.accessModes', 'spec.resources.requests.storage'] },
  Pod: { apiVersion: 'v1', fields: ['spec.containers'] },
  Job: { apiVersion: 'batch/v1', fields: ['spec.template.spec.containers', 'spec.template.spec.restartPolicy'] },
};
/** Holds an object against what its kind requires. */
function expectValid(object: Manifest): void {
  const required = requiredFields[object.kind];
  expect(object.apiVersion, object.kind).toBe(required?.apiVersion);
  expect(object.metadata.name).toMatch(/^[a-z\d]([-a-z\d.]*[a-z\d])?$/u);
  for (const field of required?.fields ?? []) expect(at(object, field), `${object.kind} ${field}`).toBeDefined();
}
/** What a container may never do. */
const withoutRoot = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
};
const at = (object: Manifest, path: string): unknown =>
  path.split('.').reduce((value: Manifest, key) => value?.[key], object);

describe.skipIf(kustomize.skip)(kustomize.title('the manifests for Kubernetes'), () => {
  it('have an overlay per device, and on each of them one per autoscaler and one for models of a volume', () => {
    const devices = ['cpu', 'gpu'];
    const components = readdirSync(join(tree, 'components')).toSorted();
    expect(components).toEqual(['hpa', 'keda', 'models']);
    expect(overlays).toEqual(devices.flatMap((device) => [device, ...components.map((name) => `${device}-${name}`)]));
  });

  describe.each(overlays)('overlay %s', (overlay) => {
    it('renders objects of known kinds with the fields that their kind requires, each name once', () => {
      for (const object of objectsOf(overlay)) expectValid(object);
      const names = objectsOf(overlay).map(({ kind, metadata }: Manifest) => `${kind}/${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
    });

    it('hands over settings that the server knows and accepts, from a ConfigMap that is there and from a Secret', () => {
      const { settings, warnings } = settingsOf(overlay);
      expect(warnings).toEqual([]);
      expect(settings.device).toEqual([overlay.startsWith('gpu') ? 'cuda' : 'cpu']);
      const others = Object.keys(configurationOf(overlay)).filter((name) => !name.startsWith('TRIVEC_'));
      expect(others).toEqual(overlay.endsWith('-models') ? ['HF_HOME'] : []);
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
      expect(containerOf(overlay).securityContext).toEqual(withoutRoot);
    });

    it('writes to volumes of its own only, among them the cache of the settings', () => {
      const { volumes } = podOf(overlay).spec;
      const mounts = containerOf(overlay).volumeMounts;
      const writable = mounts.filter(({ readOnly = false }: Manifest) => !readOnly);
      expect(writable.map(({ mountPath }: Manifest) => mountPath)).toEqual([
        settingsOf(overlay).settings.cacheDir,
        '/tmp',
      ]);
      expect(mounts.map(({ name }: Manifest) => name)).toEqual(volumes.map(({ name }: Manifest) => name));
      const own = volumes.filter(({ emptyDir }: Manifest) => emptyDir !== undefined);
      expect(own.map(({ name }: Manifest) => name)).toEqual(writable.map(({ name }: Manifest) => name));
      for (const { emptyDir } of own) expect(quantityOf(emptyDir.sizeLimit)).toBeGreaterThan(0);
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

  describe('with models of a volume', () => {
    const volume = () => renderManifests(join(tree, 'model-volume'));
    const ofVolume = (kind: string): Manifest => volume().find((object: Manifest) => object.kind === kind);
    const jobContainer = () => ofVolume('Job').spec.template.spec.containers[0];
    const claimsOf = ({ spec }: Manifest) =>
      spec.volumes.flatMap(({ persistentVolumeClaim }: Manifest) => persistentVolumeClaim ?? []);

    it('are a claim and a Job that the API server takes, without root and with the image of this version', () => {
      expect(volume().map(({ kind }: Manifest) => kind)).toEqual(['PersistentVolumeClaim', 'Job']);
      for (const object of volume()) expectValid(object);
      expect(jobContainer().image).toBe(`trivec:${version}-cpu`);
      expect(jobContainer().securityContext).toEqual(withoutRoot);
      expect(ofVolume('Job').spec.template.spec.securityContext).toEqual(podOf('cpu-models').spec.securityContext);
    });

    it.each(['cpu-models', 'gpu-models'])('%s reads, and only reads, where the Job has written', (overlay) => {
      const claimName = ofVolume('PersistentVolumeClaim').metadata.name;
      expect(claimsOf(ofVolume('Job').spec.template)).toEqual([{ claimName }]);
      expect(claimsOf(podOf(overlay))).toEqual([{ claimName, readOnly: true }]);
      const mountOf = ({ volumeMounts }: Manifest) => volumeMounts.find(({ name }: Manifest) => name === 'models');
      expect(mountOf(containerOf(overlay))).toEqual({ ...mountOf(jobContainer()), readOnly: true });
      const { HF_HOME: home } = configurationOf(overlay);
      expect(jobContainer().env).toEqual([{ name: 'HF_HOME', value: home }]);
      expect(home?.startsWith(`${mountOf(jobContainer()).mountPath}/`)).toBe(true);
    });

    it.each(['cpu-models', 'gpu-models'])(
      '%s serves the model that the Job gets, without asking the hub',
      (overlay) => {
        const { args } = jobContainer();
        expect(args.slice(0, 2)).toEqual(['models', 'pull']);
        const { settings } = settingsOf(overlay);
        expect(settings.embedModel).toEqual([args[2]]);
        expect([settings.sparseModel, settings.multiModel, settings.rerankModel]).toEqual([[], [], []]);
        expect(settings.offline).toBe(true);
      },
    );

    it('a folder of one’s own is copied into the same volume, by a pod without root', () => {
      const folder = mkdtempSync(join(tmpdir(), 'kubernetes-'));
      scratch.push(folder);
      cpSync(join(tree, 'model-volume/copy-pod.yaml'), join(folder, 'copy-pod.yaml'));
      writeFileSync(join(folder, 'kustomization.yaml'), 'resources: [copy-pod.yaml]\n');
      const [pod] = renderManifests(folder);
      expectValid(pod);
      const { template } = ofVolume('Job').spec;
      expect(claimsOf(pod)).toEqual(claimsOf(template));
      expect(pod.spec.containers[0].volumeMounts).toEqual([template.spec.containers[0].volumeMounts[0]]);
      expect(pod.spec.securityContext).toEqual(template.spec.securityContext);
      expect(pod.spec.containers[0].securityContext).toEqual(withoutRoot);
      expect(pod.metadata.labels).not.toMatchObject(only('cpu-models', 'Service').spec.selector);
    });

    it('the Service of the servers sends nothing to the Job', () => {
      const { selector } = only('cpu-models', 'Service').spec;
      expect(ofVolume('Job').spec.template.metadata.labels).not.toMatchObject(selector);
    });

    it('the Job’s command is one that the program has', () => {
      const { args } = jobContainer();
      const pull = createProgram('0')
        .commands.find((command) => command.name() === args[0])
        ?.commands.find((command) => command.name() === args[1]);
      const { operands, unknown } = pull?.parseOptions(args.slice(2)) ?? { operands: [], unknown: [args[1]] };
      expect([operands.length, unknown]).toEqual([1, []]);
    });
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
