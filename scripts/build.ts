/** Owns the build: TypeScript in `src` to the JavaScript that is served from `dist`, and the console beside it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { writeClientTypes } from './client-types.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const entry = `${root}dist/main.js`;

/**
 * Writes `dist` with an executable `main.js`; output of earlier builds stays beside it.
 * @throws Error where the compiler reports a problem; what it could write is there all the same
 */
export function compile(options: readonly string[] = []): void {
  try {
    execFileSync(
      process.execPath,
      [`${root}node_modules/typescript/bin/tsc`, '-p', 'tsconfig.build.json', ...options],
      {
        cwd: root,
        // Standard output may be a protocol's: `npm start -- --stdio` builds first.
        stdio: ['ignore', 2, 2],
      },
    );
  } finally {
    if (existsSync(entry)) chmodSync(entry, 0o755);
  }
  writeClientTypes();
}

/**
 * Writes `dist/console`: a page and the files it names, whose own names change with their content.
 * @throws Error where the bundler reports a problem
 */
export async function buildConsole(): Promise<void> {
  await build({
    configFile: false,
    root: `${root}console`,
    // Relative, so that the page also works below a path of a proxy.
    base: './',
    logLevel: 'warn',
    build: {
      outDir: `${root}dist/console`,
      emptyOutDir: true,
      assetsDir: 'console',
      assetsInlineLimit: 0,
      modulePreload: false,
      target: 'es2022',
    },
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(`${root}dist`, { recursive: true, force: true });
  try {
    compile();
    await buildConsole();
  } catch (error) {
    if (error instanceof Error && !('status' in error)) console.error(error.message);
    process.exitCode = 1;
  }
}
