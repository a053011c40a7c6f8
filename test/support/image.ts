/** Owns the image's contents without Docker: the same files in a folder, read-only, and its command run as its user. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { argumentsOf, environmentOf, instructionsOf, parseDockerfile } from './dockerfile.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const instructions = instructionsOf(parseDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8')), 'cpu');
const [uid = '', gid = ''] = (argumentsOf(instructions, 'USER').at(-1) ?? '').split(':');
const asUser = [
  'setpriv',
  `--reuid=${uid}`,
  `--regid=${gid}`,
  '--clear-groups',
  '--no-new-privs',
  '--bounding-set=-all',
];

/** Whether this process may become the image's user and that user may run node. */
export const canBecomeImageUser =
  spawnSync(asUser[0] ?? '', [...asUser.slice(1), process.execPath, '--version']).status === 0;

/** The image's files in a folder of their own. */
export interface ImageTree {
  readonly uid: string;
  /** Runs the image's start command with more arguments, or another node script, as the image's user. */
  start(args: readonly string[]): ChildProcess;
  run(script: string, environment?: Record<string, string>): number | null;
  /** Status of an attempt to create a file in a folder of the tree, as the image's user; 0 would be a hole. */
  tryToWrite(folder: string): number | null;
  remove(): void;
}

/** Folders of node_modules that `npm ci --omit=dev` would install here. */
function productionPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([path, entry]) => path !== '' && entry.dev !== true && entry.devOptional !== true)
    .map(([path]) => path);
}

/** Lays the tree out as the Dockerfile does, prepares its cache, and takes every write permission away. */
export function layImageTree(): ImageTree {
  const base = mkdtempSync(join(tmpdir(), 'image-'));
  const app = join(base, 'app');
  const cache = join(base, 'cache');
  chmodSync(base, 0o755);
  for (const path of ['dist', 'models', 'corpus', 'package.json'])
    cpSync(join(root, path), join(app, path), { recursive: true });
  cpSync(join(root, 'scripts/docker/health.js'), join(app, 'health.js'));
  for (const path of productionPackages()) {
    try {
      cpSync(join(root, path), join(app, path), { recursive: true });
    } catch (error) {
      // Packages for other platforms are in the lock file and not on the disk.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  execFileSync('sh', [join(root, 'scripts/docker/prune.sh'), join(app, 'node_modules')]);
  const environment = {
    ...environmentOf(instructions),
    PATH: process.env['PATH'] ?? '',
    HOME: '/nonexistent',
    TRIVEC_CACHE_DIR: cache,
  };
  const inApp = (argument: string) => argument.replace(/^\/app\//, `${app}/`);
  const [, ...command] = ['ENTRYPOINT', 'CMD']
    .flatMap((name) => JSON.parse(argumentsOf(instructions, name).at(-1) ?? '[]') as string[])
    .map(inApp);
  execFileSync(process.execPath, [...command, '--prepare-only'], { cwd: app, env: environment, stdio: 'pipe' });
  execFileSync('chmod', ['-R', 'a-w,a+rX', base]);

  const [setpriv = '', ...privileges] = asUser;
  return {
    uid,
    start: (args) =>
      spawn(setpriv, [...privileges, process.execPath, ...command, ...args], {
        cwd: app,
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    run: (script, more = {}) =>
      spawnSync(setpriv, [...privileges, process.execPath, inApp(script)], {
        cwd: app,
        env: { ...environment, ...more },
      }).status,
    tryToWrite: (folder) => spawnSync(setpriv, [...privileges, 'touch', join(base, folder, 'written')]).status,
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}
