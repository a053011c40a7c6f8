/** Owns the build before the tests: tests that start the server run `dist`, never a stale one. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { compile } from '../../scripts/build.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function newestChangeMs(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(folder, name)).mtimeMs)
    .reduce((newest, changeMs) => Math.max(newest, changeMs), 0);
}

/** Builds `dist` unless it is newer than every source file; types are left to `npm run check`. */
export default function setup(): void {
  const built = statSync(join(root, 'dist/main.js'), { throwIfNoEntry: false });
  if (built !== undefined && built.mtimeMs > newestChangeMs(join(root, 'src'))) return;
  compile(['--noCheck']);
}
