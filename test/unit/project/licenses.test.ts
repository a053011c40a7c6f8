import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isAllowed, servedPackages } from '../../../scripts/licenses/packages.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');
const packages = servedPackages(textOf('package-lock.json'));

describe('the packages that are served with', () => {
  it('are those of the lock file that are not for development only, under their real names', () => {
    const lock = JSON.stringify({
      packages: {
        '': { name: 'root' },
        'node_modules/a': { version: '1', license: 'MIT' },
        'node_modules/b/node_modules/a': { version: '2', license: 'ISC' },
        'node_modules/@s/c': { version: '1', optional: true },
        'node_modules/dev': { version: '1', license: 'MIT', dev: true },
        'node_modules/alias': { name: 'a', version: '1', license: 'MIT' },
      },
    });
    expect(servedPackages(lock)).toEqual([
      { name: '@s/c', version: '1', license: null },
      { name: 'a', version: '1', license: 'MIT' },
      { name: 'a', version: '2', license: 'ISC' },
    ]);
  });

  it('hold every dependency of package.json', () => {
    const { dependencies } = JSON.parse(textOf('package.json')) as { dependencies: Record<string, string> };
    const names = new Set(packages.map(({ name, version }) => `${name} ${version}`));
    for (const [name, version] of Object.entries(dependencies)) expect(names).toContain(`${name} ${version}`);
  });

  it.each(packages)('$name $version may be served under $license', (each) => {
    expect(isAllowed(each)).toBe(true);
  });

  it('are listed with their licences, and the list is current', () => {
    const rows = textOf('THIRD-PARTY-LICENSES.md')
      .split('\n')
      .filter((line) => /^\| (?!Package|-)/.test(line))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    expect(rows.map(([, name, version, license]) => ({ name, version, license }))).toEqual(packages);
  });
});

describe('a licence', () => {
  it.each([
    ['x', 'MIT', true],
    ['x', '(MIT OR CC0-1.0)', true],
    ['x', 'GPL-3.0-only OR MIT', true],
    ['x', 'Apache-2.0 AND BSD-3-Clause', true],
    ['x', 'Apache-2.0 AND GPL-3.0-only', false],
    ['x', 'GPL-3.0-only', false],
    ['x', 'AGPL-3.0-only', false],
    ['x', 'LGPL-3.0-or-later', false],
    ['@img/sharp-libvips-linux-x64', 'LGPL-3.0-or-later', true],
    ['@img/sharp-win32-x64', 'Apache-2.0 AND LGPL-3.0-or-later', true],
    ['x', 'SEE LICENSE IN LICENSE', false],
    ['x', 'MIT AND (GPL-3.0-only OR ISC)', false],
    ['x', 'UNLICENSED', false],
    ['x', '', false],
    ['x', null, false],
  ])('of %s that is %s is allowed: %s', (name, license, is) => {
    expect(isAllowed({ name, version: '1', license })).toBe(is);
  });
});

describe('the bill of materials', () => {
  it('is CycloneDX, holds what is installed of the packages that are served, and nothing else', () => {
    const { status, stdout } = spawnSync(process.execPath, ['--import', 'tsx', join(root, 'scripts/sbom.ts')], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 67_108_864,
    });
    expect(status).toBe(0);
    const bill = JSON.parse(stdout) as { bomFormat: string; components: { name: string; version: string }[] };
    expect(bill.bomFormat).toBe('CycloneDX');
    const listed = bill.components.map(({ name, version }) => `${name} ${version}`);
    expect(packages.map(({ name, version }) => `${name} ${version}`)).toEqual(expect.arrayContaining(listed));
    const { dependencies } = JSON.parse(textOf('package.json')) as { dependencies: Record<string, string> };
    expect(listed).toEqual(
      expect.arrayContaining(Object.entries(dependencies).map(([name, version]) => `${name} ${version}`)),
    );
  });
});
