/**
 * Owns the software bill of materials, CycloneDX on stdout: what `npm sbom` lists, less what only development needs.
 * With `--omit dev` npm leaves out packages that are for both.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { servedPackages } from './licenses/packages.ts';

interface Bill {
  readonly metadata: { readonly component: { readonly 'bom-ref': string } };
  readonly components: readonly { readonly 'bom-ref': string; readonly name: string; readonly version: string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

const root = fileURLToPath(new URL('..', import.meta.url));
const maxBytes = 67_108_864;
const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: maxBytes,
});
const bill = JSON.parse(text) as Bill;
const served = new Set(
  servedPackages(readFileSync(`${root}package-lock.json`, 'utf8')).map(({ name, version }) => `${name}@${version}`),
);
const components = bill.components.filter(({ name, version }) => served.has(`${name}@${version}`));
const kept = new Set([bill.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])]);
const dependencies = bill.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map((entry) => ({ ...entry, dependsOn: entry.dependsOn.filter((ref) => kept.has(ref)) }));
process.stdout.write(`${JSON.stringify({ ...bill, components, dependencies }, null, 2)}\n`);
