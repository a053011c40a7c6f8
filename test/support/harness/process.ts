/** Owns the fixture as a process: compiled once for each test file, spawned with its limits. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll } from 'vitest';
import { fixtureFlags } from '../fixture/settings.ts';
import { watch, type WatchedProcess } from './watch.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const fixtureFiles = [
  ...['main', 'engine', 'executor', 'rows', 'tokenizer'].map((name) => `test/support/fixture/${name}`),
  ...['fake-channel', 'model-facts'].map((name) => `test/support/${name}`),
];

let compiled: string | null = null;
let compiledFolder: string | null = null;
afterAll(() => {
  if (compiledFolder !== null) rmSync(compiledFolder, { recursive: true, force: true });
});

/** Entry of the fixture in JavaScript beside a link to `dist`: it starts in half the time that a loader of TypeScript takes. */
function compiledEntry(): string {
  if (compiled !== null) return compiled;
  const folder = mkdtempSync(join(tmpdir(), 'trivec-fixture-'));
  compiledFolder = folder;
  symlinkSync(join(root, 'dist'), join(folder, 'src'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of fixtureFiles) {
    const { outputText } = ts.transpileModule(readFileSync(join(root, `${name}.ts`), 'utf8'), {
      compilerOptions: {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.ESNext,
        rewriteRelativeImportExtensions: true,
        verbatimModuleSyntax: true,
      },
    });
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, `${name}.js`), outputText);
  }
  compiled = join(folder, 'test/support/fixture/main.js');
  return compiled;
}

const isOfPort = (at: number) => [at, at - 1].includes(fixtureFlags.indexOf('--port'));

/** What starts the fixture with its limits and these flags besides. */
export function fixtureCommand(flags: readonly string[]): {
  readonly command: string;
  readonly args: readonly string[];
} {
  // A socket stands in the place of a port.
  const own = flags.includes('--socket') ? fixtureFlags.filter((_, at) => !isOfPort(at)) : fixtureFlags;
  return { command: process.execPath, args: [compiledEntry(), 'serve', ...own, ...flags] };
}

/** Spawns the fixture with its limits and these flags besides; `environment` adds to an empty one. */
export function spawnFixture(flags: readonly string[], environment: Record<string, string> = {}): WatchedProcess {
  const { command, args } = fixtureCommand(flags);
  const child = spawn(command, args, {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: 'pipe',
  });
  return watch(child);
}
