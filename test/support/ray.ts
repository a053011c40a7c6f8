/** Owns running the Ray example in a Python environment that has what it needs, and ending all that it started. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const program = join(root, 'examples/ray/embed_parquet.py');
const parquet = join(root, 'test/scale/parquet.py');
const python = process.env['RAY_PYTHON'] ?? join(root, '.cache/ray/bin/python');
const look = 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ["ray", "pyarrow"])))';

/** Whether the example can be run here. */
export const isRayThere = existsSync(python) && spawnSync(python, ['-c', look]).status === 0;

/** A row of an input. */
export interface InputRow {
  readonly id: number;
  readonly text: string | null;
}

/** A row of an output: the vector as base64 of little-endian float32. */
export interface OutputRow {
  readonly id: number;
  readonly embedding: string | null;
}

/** A run of the example that goes on. */
export interface RayRun {
  /** What it printed, once it has ended; rejects where it ended with an error. */
  readonly printed: Promise<string>;
  /** Ends the driver and everything it started, as a machine that fails does. */
  kill(): Promise<void>;
}

/** A place for runs of the example. */
export interface RayPlace {
  readonly target: string;
  /** Row groups by file name. */
  writeInput(files: Readonly<Record<string, readonly (readonly InputRow[])[]>>): void;
  start(flags: readonly string[]): RayRun;
  /** What a program that is not given the place's input prints. */
  startOn(source: string, flags: readonly string[]): RayRun;
  /** What the commands of a page print, run in the place, their Python this one. */
  runPage(commands: readonly string[]): Promise<string>;
  /** Rows by the name of their output file. */
  readOutput(): Readonly<Record<string, readonly OutputRow[]>>;
  /** Processes that a run has started and that are still there. */
  processes(): readonly number[];
  /** What a script with the example's client prints. */
  runClient(script: string): Promise<string>;
  remove(): Promise<void>;
}

/** An empty place; `environment` is added to one that holds nothing but PATH. */
export function openRayPlace(environment: Readonly<Record<string, string>>): RayPlace {
  // Short, because sockets lie below it: their paths may not be long.
  const folder = mkdtempSync(join(tmpdir(), 'ray-'));
  const [source, target] = [join(folder, 'input'), join(folder, 'output')];
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder, RAY_TMPDIR: folder, ...environment };
  const run = (args: readonly string[], input?: string): string => {
    const { status, stdout, stderr } = spawnSync(python, args, {
      input,
      env,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    });
    if (status !== 0) throw new Error(stderr);
    return stdout;
  };
  const place: RayPlace = {
    target,
    writeInput: (files) => void run([parquet, 'write', source], JSON.stringify(files)),
    readOutput: () => JSON.parse(run([parquet, 'read', target])) as Record<string, OutputRow[]>,
    start: (flags) => place.startOn(source, flags),
    startOn(from, flags) {
      const child = spawn(python, [program, from, target, ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
      const { printed, closed } = outputOf(child);
      // One that was killed is not asked what it printed.
      printed.catch(() => undefined);
      return {
        printed,
        async kill() {
          child.kill('SIGKILL');
          for (const pid of processesWith(folder)) killIfThere(pid);
          await closed;
        },
      };
    },
    runPage(commands) {
      for (const name of ['corpus', 'examples']) symlinkSync(join(root, name), join(folder, name));
      const script = commands.map((command) => command.replace(/^ray\/bin\/python/u, python)).join('\n');
      const stdio = ['ignore', 'pipe', 'pipe'] as const;
      return outputOf(spawn('bash', ['-e', '-c', script], { cwd: folder, env, stdio: [...stdio] })).printed;
    },
    processes: () => processesWith(folder),
    runClient: (script) =>
      outputOf(
        spawn(python, ['-c', script], {
          env: { ...env, PYTHONPATH: join(root, 'examples/ray') },
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      ).printed,
    async remove() {
      for (const pid of processesWith(folder)) killIfThere(pid);
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
  return place;
}

function outputOf(child: ChildProcess): { printed: Promise<string>; closed: Promise<unknown> } {
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  const printed = closed.then((code) => {
    if (code !== 0) throw new Error(`exit code ${String(code)}:\n${stdout}\n${stderr}`);
    return stdout;
  });
  return { printed, closed };
}

/** Processes whose environment names the place: the driver's own, and none of another run. */
function processesWith(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').includes(`RAY_TMPDIR=${folder}`);
      } catch {
        // It has ended, or is another user's.
        return false;
      }
    })
    .map(Number);
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
