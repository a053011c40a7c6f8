/** Owns the trying of one device in a process that is thrown away, whatever becomes of it there. */
import { fork } from 'node:child_process';
import type { ProbeQuestion } from '../../executor/probe-protocol.ts';
import { allocatorEnvironment } from '../channel.ts';
import type { GpuCandidate, ProbeResult } from './candidate.ts';
import { judgeProbe } from './verdict.ts';
import type { ProbeEnd } from './verdict.ts';

/** What devices are tried with. */
export interface ProbeOptions {
  /** Compiled entry file of the probe process. */
  readonly entryPath: string;
  /** Threads of the CPU provider that a device is timed against. */
  readonly threads: number;
  /** Everything that the probe sees of the environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** @unit ms */
  readonly timeoutMs: number;
}

/** The log's end counts: what made the probe fail was said last. @unit bytes */
const maxLogBytes = 262_144;
/** Makes the Vulkan loader name the device that was opened. */
const loaderLog = { VK_LOADER_DEBUG: 'error,warn,info,driver' };

/** The verdict on a device after one real run on it; resolves within the bound, with the process ended. */
export async function probeDevice(candidate: GpuCandidate, options: ProbeOptions): Promise<ProbeResult> {
  const { end, log } = await tryInChild(
    { type: 'probe', provider: candidate.provider, deviceIndex: candidate.index, threads: options.threads },
    options,
  );
  return judgeProbe(candidate, end, log);
}

function tryInChild(question: ProbeQuestion, options: ProbeOptions): Promise<{ end: ProbeEnd; log: string }> {
  const { entryPath, environment, timeoutMs } = options;
  return new Promise((resolve) => {
    const child = fork(entryPath, [String(process.pid)], {
      serialization: 'advanced',
      // Drivers write to both; nothing of it may reach this process's stdout, which can be a protocol stream.
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      execArgv: [],
      env: { ...environment, ...allocatorEnvironment, ...loaderLog },
    });
    let log = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      log = Buffer.concat([log, chunk]).subarray(-maxLogBytes);
    };
    child.stdout?.on('data', take);
    child.stderr?.on('data', take);
    let end: ProbeEnd | null = null;
    const finish = (): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      // A process that no signal ends, because a driver holds it, must not hold this one.
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      if (child.connected) child.disconnect();
      resolve({ end: end ?? { kind: 'timedOut', timeoutMs }, log: log.toString('utf8') });
    };
    const timer = setTimeout(finish, timeoutMs);
    child.once('message', (message) => {
      end = { kind: 'answered', message };
      // Ended without ceremony, since drivers crash there too; `close` comes once its log was read to the end.
      child.kill('SIGKILL');
    });
    child.once('error', (error) => {
      end ??= { kind: 'notStarted', reason: error.message };
      if (child.pid === undefined) finish();
    });
    // Not `exit`: a message that was sent before the end is still delivered before `close`.
    child.once('close', (code, signal) => {
      end ??= { kind: 'exited', code, signal };
      finish();
    });
    child.send(question, () => undefined);
  });
}
