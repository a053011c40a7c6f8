/** Owns one process of the bare loop: a session of one thread over the prepared graph and nothing else. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { InferenceSession, Tensor } from 'onnxruntime-node';

/** What the worker is asked. */
export type BareQuestion =
  | { readonly type: 'load'; readonly graphPath: string; readonly outputName: string }
  | { readonly type: 'run'; readonly texts: readonly (readonly number[])[]; readonly pauseMs: number };

/** What it answers. */
export interface BareAnswer {
  /** Of each run alone. @unit ms */
  readonly runMs: readonly number[];
  /** Processor time of all runs. @unit ms */
  readonly cpuMs: number;
}

process.env['ORT_DISABLE_TELEMETRY'] = '1';
let session: InferenceSession | null = null;
let outputName = '';

async function load(question: Extract<BareQuestion, { type: 'load' }>): Promise<BareAnswer> {
  outputName = question.outputName;
  session = await InferenceSession.create(question.graphPath, {
    executionProviders: ['cpu'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    enableCpuMemArena: false,
    enableMemPattern: false,
    extra: {
      session: { intra_op: { allow_spinning: '0' }, inter_op: { allow_spinning: '0' } },
      optimization: { disable_specified_optimizers: 'SkipLayerNormFusion' },
    },
  });
  return { runMs: [], cpuMs: 0 };
}

async function run({ texts, pauseMs }: Extract<BareQuestion, { type: 'run' }>): Promise<BareAnswer> {
  if (session === null) throw new Error('nothing is loaded');
  const prepared = texts.map((ids) => BigInt64Array.from(ids, BigInt));
  const before = process.cpuUsage();
  const runMs: number[] = [];
  for (const ids of prepared) {
    if (pauseMs > 0) await sleep(pauseMs);
    const startMs = performance.now();
    const dims = [1, ids.length];
    const inputs: Record<string, Tensor> = {
      input_ids: new Tensor('int64', ids, dims),
      token_type_ids: new Tensor('int64', new BigInt64Array(ids.length), dims),
    };
    await session.run(inputs, [outputName]);
    runMs.push(performance.now() - startMs);
  }
  const spent = process.cpuUsage(before);
  return { runMs, cpuMs: (spent.user + spent.system) / 1000 };
}

process.on('message', (question: BareQuestion) => {
  void (question.type === 'load' ? load(question) : run(question)).then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit(0));
