/** Owns rendering manifests with the real kustomize, and reading what it prints. */
import { spawnSync } from 'node:child_process';

/** A member of a manifest; what is not there is undefined. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a test names the members that it expects
export type Manifest = any;

// No YAML package is a direct dependency; Python's comes with Debian's docker-compose.
const toJson = 'import json, sys, yaml; json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)';
const python = ['python3', '/usr/bin/python3'].find((name) => spawnSync(name, ['-c', 'import yaml']).status === 0);

/** Whether manifests can be rendered and read here. */
export const isKustomizeThere = python !== undefined && spawnSync('kustomize', ['version']).status === 0;

/**
 * The objects of a folder, as `kustomize build` renders them.
 * @throws Error with what kustomize says
 */
export function renderManifests(folder: string): readonly Manifest[] {
  const built = spawnSync('kustomize', ['build', folder], { encoding: 'utf8' });
  if (built.status !== 0) throw new Error(built.stderr);
  const read = spawnSync(python ?? 'python3', ['-c', toJson], { input: built.stdout, encoding: 'utf8' });
  if (read.status !== 0) throw new Error(read.stderr);
  return JSON.parse(read.stdout) as Manifest[];
}

/** Seconds, bytes or counts of a quantity such as `250m`, `4Gi` or `2`. */
export function quantityOf(text: string | number): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/u.exec(String(text)) ?? [];
  if (digits === undefined) throw new Error(`${String(text)} is not a quantity`);
  const factors: Record<string, number> = {
    '': 1,
    m: 1e-3,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    Ti: 2 ** 40,
  };
  return Number(digits) * (factors[unit] ?? Number.NaN);
}
