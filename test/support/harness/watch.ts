/** Owns watching a process from its first word to its end. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process';

/** A process that was spawned with pipes. */
export interface WatchedProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Everything on stdout so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves with the text once stdout or stderr matches. */
  until(pattern: RegExp): Promise<string>;
  /** Exit code, or the name of the signal that ended it, once all output has been read. */
  readonly ended: Promise<number | string>;
}

/** Watches a process that was spawned with pipes. */
export function watch(child: ChildProcessWithoutNullStreams): WatchedProcess {
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
