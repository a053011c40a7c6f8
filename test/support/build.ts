/** Owns the build before the tests: tests that start the server run `dist`, never a stale one. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole, compile } from '../../scripts/build.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

function newestChangeMs(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => statSync(join(folder, name)).mtimeMs)
    .reduce((newest, changeMs) => Math.max(newest, changeMs), 0);
}

/** Whether a file that was built is newer than everything it was built from. */
function isFresh(built: string, source: string): boolean {
  const file = statSync(join(root, built), { throwIfNoEntry: false });
  return file !== undefined && file.mtimeMs > newestChangeMs(join(root, source));
}

/** Builds what is not newer than every source file; types are left to `npm run check`. */
export default async function setup(): Promise<void> {
  if (!isFresh('dist/main.js', 'src')) compile(['--noCheck']);
  if (!isFresh('dist/console/index.html', 'console')) await buildConsole();
}
