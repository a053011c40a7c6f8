/** Owns the throw-away process that creates the sessions of an executor first, for what the engine logs about them. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { InferenceSession } from 'onnxruntime-node';
import { messageOf } from './engine-failure.ts';
import { watchParent } from './parent-watch.ts';
import { prepareEngine, sessionOptions } from './session-options.ts';
import type { SessionSettings } from './session-options.ts';

const scriptPath = fileURLToPath(import.meta.url);

/**
 * Longest log that is read: 300 characters a node, and as many for how the graph was optimised, make 2 MB for the
 * largest encoders.
 * @unit bytes
 */
const maxLogBytes = 64 * 1024 * 1024;

/** A session to create. */
export interface ProbedGraph extends SessionSettings {
  /** What the log calls the session. */
  readonly logId: string;
  readonly modelId: string;
  readonly path: string;
}

/**
 * The log of a process that created the sessions. A process of its own, because the engine tells the placement to
 * nothing but its log, and because a library or a driver that does not fit may end the process that loads it.
 * @throws Error that names the model and what it lacks
 */
export function runProbe(graphs: readonly ProbedGraph[]): Promise<string> {
  const child = spawn(process.execPath, [scriptPath, String(process.pid), JSON.stringify(graphs)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const log: Buffer[] = [];
  const said: Buffer[] = [];
  let logBytes = 0;
  child.stdout.on('data', (part: Buffer) => said.push(part));
  child.stderr.on('data', (part: Buffer) => {
    logBytes += part.length;
    if (logBytes <= maxLogBytes) log.push(part);
    else child.kill('SIGKILL');
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code: number | null, signal: string | null) => {
      const failure = Buffer.concat(said).toString();
      if (code === 0) resolve(Buffer.concat(log).toString());
      else reject(new Error(failure === '' ? endedEarly(code, signal) : failure));
    });
  });
}

const endedEarly = (code: number | null, signal: string | null): string =>
  `the process that tried the models was ended by ${signal ?? `exit code ${String(code)}`}`;

/** Creates the sessions and gives the exit code; the first that fails is told on standard output. */
async function createSessions(graphs: readonly ProbedGraph[]): Promise<number> {
  prepareEngine();
  const kept: InferenceSession[] = [];
  for (const { logId, modelId, path, ...settings } of graphs) {
    const options = { ...sessionOptions(settings), logId, logSeverityLevel: 0, logVerbosityLevel: 1 } as const;
    try {
      // Kept: a device that is let go of with its last session is not always found again.
      kept.push(await InferenceSession.create(path, options));
    } catch (error) {
      process.stdout.write(`Model ${modelId} (${path}): ${messageOf(error)}`);
      return 1;
    }
  }
  return 0;
}

if (process.argv[1] === scriptPath) {
  const [, , parentPid, graphs = '[]'] = process.argv;
  await watchParent(Number(parentPid));
  process.exitCode = await createSessions(JSON.parse(graphs) as ProbedGraph[]);
  process.exit();
}
