/** Owns the fixture as a process: compiled once for each test file, spawned, watched to its end. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { fixtureFlags } from '../fixture/settings.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const fixtureFiles = ['main', 'engine', 'executor', 'rows', 'tokenizer'].map((name) => `test/support/fixture/${name}`);

let compiled: string | null = null;

/** Entry of the fixture in JavaScript beside a link to `dist`: it starts in half the time that a loader of TypeScript takes. */
function compiledEntry(): string {
  if (compiled !== null) return compiled;
  const folder = mkdtempSync(join(tmpdir(), 'trivec-fixture-'));
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  symlinkSync(join(root, 'dist'), join(folder, 'src'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  for (const name of [...fixtureFiles, 'test/support/fake-channel']) {
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

/** A spawned fixture server. */
export interface FixtureProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Everything on stdout so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves with the text once stdout or stderr matches. */
  until(pattern: RegExp): Promise<string>;
  /** Exit code, or the name of the signal that ended it, once all output has been read. */
  readonly ended: Promise<number | string>;
}

/** Spawns the fixture with its limits and these flags besides; `environment` adds to an empty one. */
export function spawnFixture(flags: readonly string[], environment: Record<string, string> = {}): FixtureProcess {
  const child = spawn(process.execPath, [compiledEntry(), 'serve', ...fixtureFlags, ...flags], {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: 'pipe',
  });
  return watch(child);
}

/** Watches a process that was spawned with pipes. */
export function watch(child: ChildProcessWithoutNullStreams): FixtureProcess {
  const texts = { stdout: '', stderr: '' };
  const watchers = new Set<() => void>();
  const look = () => {
    for (const watcher of [...watchers]) watcher();
  };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      texts[name] += chunk;
      look();
    });
  }
  child.stdin.on('error', () => undefined);
  const ended = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      resolve(code ?? signal ?? 'unknown');
    });
  });
  return {
    child,
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    ended,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const settle = () => {
          const found = [texts.stdout, texts.stderr].find((text) => pattern.test(text));
          if (found === undefined) return;
          watchers.delete(settle);
          resolve(found);
        };
        watchers.add(settle);
        settle();
        void ended.then((code) => {
          reject(new Error(`it ended (${code}) before ${String(pattern)}: ${texts.stderr.slice(-1000)}`));
        });
      }),
  };
}
