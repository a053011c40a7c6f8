/** Owns which packages are served with, by the lock file, and which licences they may have. */

/** One package at one version, for whatever platform. */
export interface ServedPackage {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression; null where the package names none. */
  readonly license: string | null;
}

interface LockedPackage {
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
  readonly link?: boolean;
}

/** Licences that ask for no more than their notice. */
const allowed: ReadonlySet<string> = new Set([
  ...['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'CC0-1.0', 'ISC', 'MIT', 'Unlicense'],
]);
/** Packages of a library that is loaded as it is, and can be replaced: what the LGPL asks for. */
const replaceableLibrary = /^@img\/sharp-/;

/** Every package that is not only for development, each version once, by name. */
export function servedPackages(lockText: string): ServedPackage[] {
  const { packages } = JSON.parse(lockText) as { packages: Readonly<Record<string, LockedPackage>> };
  const served = new Map<string, ServedPackage>();
  for (const [path, { name, version = '', license, dev, link }] of Object.entries(packages)) {
    if (path === '' || dev === true || link === true) continue;
    // An alias names the package that is really there.
    const realName = name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    served.set(`${realName}@${version}`, { name: realName, version, license: license ?? null });
  }
  const order = ({ name, version }: ServedPackage) => `${name} ${version}`;
  return [...served.values()].sort((one, other) => (order(one) < order(other) ? -1 : 1));
}

/** Whether what the expression asks for can be met; one that cannot be read cannot. */
export function isAllowed({ name, license }: ServedPackage): boolean {
  if (license === null) return false;
  const mayBe = (id: string) => allowed.has(id) || (id === 'LGPL-3.0-or-later' && replaceableLibrary.test(name));
  const bare = license.replace(/^\((.*)\)$/, '$1');
  if (/[()]/.test(bare)) return false;
  return bare.split(' OR ').some((choice) => choice.split(' AND ').every((id) => mayBe(id.trim())));
}
