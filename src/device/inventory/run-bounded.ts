/** Owns the running of a small tool with a bound on its time and on what it says. */
import { spawn } from 'node:child_process';

/** What a tool came to: what it printed, or why that counts for nothing. */
export type ToolOutcome = { readonly output: string } | { readonly problem: string };

/** What a tool is run with. */
export interface ToolOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** @unit ms */
  readonly timeoutMs: number;
  /** Most that it may print. @unit bytes */
  readonly maxOutputBytes: number;
}

/** Signals by which a person or a supervisor ends this process. */
const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Resolves with what the tool printed, or with why it is not believed, never later than its bound.
 * It and everything it started is killed where it hangs or prints without end.
 */
export function runTool(command: string, options: readonly string[], bounds: ToolOptions): Promise<ToolOutcome> {
  const { environment, timeoutMs, maxOutputBytes } = bounds;
  return new Promise((resolve) => {
    // A group of its own, so that a script goes together with what it waits for.
    const isGroup = process.platform !== 'win32';
    const child = spawn(command, options, {
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: isGroup,
      windowsHide: true,
    });
    const chunks: Buffer[] = [];
    let printedBytes = 0;
    // A signal that ends this process must not leave the tool behind: it is passed on, then takes its usual course.
    const onSignal = (signal: NodeJS.Signals): void => {
      killTree(child.pid, isGroup);
      process.kill(process.pid, signal);
    };
    for (const signal of endingSignals) process.once(signal, onSignal);
    const finish = (outcome: ToolOutcome): void => {
      clearTimeout(timer);
      for (const signal of endingSignals) process.removeListener(signal, onSignal);
      if (child.exitCode === null && child.signalCode === null) killTree(child.pid, isGroup);
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      resolve(outcome);
    };
    const timer = setTimeout(() => {
      finish({ problem: `${command} gave no answer within ${timeoutMs} ms` });
    }, timeoutMs);
    const take = (chunk: Buffer): void => {
      printedBytes += chunk.length;
      if (printedBytes > maxOutputBytes) finish({ problem: `${command} printed more than ${maxOutputBytes} bytes` });
      else chunks.push(chunk);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => {
      finish({ problem: `${command} could not be started: ${error.message}` });
    });
    child.on('close', (code, signal) => {
      const output = Buffer.concat(chunks).toString('utf8');
      if (code === 0) {
        finish({ output });
        return;
      }
      const said = output.trim().split('\n')[0]?.slice(0, 200) ?? '';
      const end = signal === null ? `exit code ${code}` : `signal ${signal}`;
      finish({ problem: `${command} ended with ${end}${said === '' ? '' : ` (${said})`}` });
    });
  });
}

function killTree(pid: number | undefined, isGroup: boolean): void {
  if (pid === undefined) return;
  try {
    process.kill(isGroup ? -pid : pid, 'SIGKILL');
  } catch {
    // It ended by itself in the meantime.
  }
}
