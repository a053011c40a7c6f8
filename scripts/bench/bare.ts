/** Owns the bare loop: as many processes as there are cores, each running texts that were tokenised beforehand. */
import { allocatorEnvironment } from '../../src/device/channel.ts';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import type { BareAnswer, BareQuestion } from './bare-worker.ts';

const workerPath = fileURLToPath(new URL('bare-worker.ts', import.meta.url));

/** Longest time for one answer of a worker. @unit ms */
const answerTimeoutMs = 300_000;

/** A text as its ids. */
export type Ids = readonly number[];

/** What a pass over texts took. */
export interface BarePass {
  /** From the start to the end of the last process. @unit ms */
  readonly elapsedMs: number;
  /** Processor time of all processes. @unit ms */
  readonly cpuMs: number;
  /** @unit ms */
  readonly runMs: readonly number[];
}

/** Fresh processes that have loaded the graph. */
export interface BareLoop {
  /** Runs the texts on all processes, shared out by length. */
  runAll(texts: readonly Ids[]): Promise<BarePass>;
  /** Runs the texts on one process, with a pause before each. */
  runPaced(texts: readonly Ids[], pauseMs: number): Promise<BarePass>;
  end(): void;
}

/** Starts the processes. */
export async function startBareLoop(graphPath: string, outputName: string, processes: number): Promise<BareLoop> {
  const workers = Array.from({ length: processes }, () =>
    fork(workerPath, [], {
      execArgv: ['--import', 'tsx'],
      serialization: 'advanced',
      env: { PATH: process.env['PATH'], ...allocatorEnvironment },
    }),
  );
  const pass = async (shares: readonly (readonly Ids[])[], pauseMs: number): Promise<BarePass> => {
    const startMs = performance.now();
    const answers = await Promise.all(
      shares.flatMap((texts, index) => {
        const worker = workers[index];
        return worker === undefined ? [] : [ask(worker, { type: 'run', texts, pauseMs })];
      }),
    );
    return {
      elapsedMs: performance.now() - startMs,
      cpuMs: answers.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
      runMs: answers.flatMap(({ runMs }) => runMs),
    };
  };
  const end = () => {
    for (const worker of workers) worker.kill('SIGKILL');
  };
  try {
    await Promise.all(workers.map((worker) => ask(worker, { type: 'load', graphPath, outputName })));
  } catch (error) {
    end();
    throw error;
  }
  return {
    runAll: (texts) => pass(shareOut(texts, processes), 0),
    runPaced: (texts, pauseMs) => pass([texts], pauseMs),
    end,
  };
}

/** The texts in `shares` parts of nearly the same number of tokens: longest first, each to the lightest part. */
export function shareOut(texts: readonly Ids[], shares: number): Ids[][] {
  const parts = Array.from({ length: shares }, () => ({ texts: [] as Ids[], tokens: 0 }));
  for (const text of [...texts].sort((a, b) => b.length - a.length)) {
    const lightest = parts.reduce((least, part) => (part.tokens < least.tokens ? part : least));
    lightest.texts.push(text);
    lightest.tokens += text.length;
  }
  return parts.map((part) => part.texts);
}

async function ask(worker: ChildProcess, question: BareQuestion): Promise<BareAnswer> {
  const answered = new AbortController();
  const signal = AbortSignal.any([AbortSignal.timeout(answerTimeoutMs), answered.signal]);
  const gone = once(worker, 'exit', { signal }).then(() => {
    throw new Error('a process of the bare loop ended');
  });
  gone.catch(() => undefined);
  try {
    worker.send(question);
    const [answer] = (await Promise.race([once(worker, 'message', { signal }), gone])) as [BareAnswer];
    return answer;
  } finally {
    answered.abort();
  }
}
