/** Owns a tokenizer, models and a scheduler that are simple enough to compute by hand. */
import { invalidField, type ServiceError } from '../../../src/errors.ts';
import type { RunItem, RunRow } from '../../../src/executor/protocol.ts';
import type { ModelManifest } from '../../../src/model/manifest.ts';
import type { Job, JobOutcome } from '../../../src/schedule/call.ts';
import type { Load } from '../../../src/schedule/admission.ts';
import { emptyGauges } from '../../../src/schedule/item.ts';
import type { Scheduler } from '../../../src/schedule/scheduler.ts';
import type { ServedModel, TaskContext } from '../../../src/task/context.ts';
import { CallStages } from '../../../src/telemetry/stages.ts';
import type { TextTokenizer, TokenizedText } from '../../../src/tokenize/tokenizer.ts';
import { plainFacts } from '../../support/model-facts.ts';

const open = 1;
const close = 2;
const charactersOf = (text: string) => Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));

/** One token per character between two special tokens, cut to `maxTokens`. */
export function createFakeTokenizer(maxTokens: number): TextTokenizer & { readonly texts: string[] } {
  const texts: string[] = [];
  const cut = (head: number[], body: number[], typeIds: Uint8Array | null): TokenizedText => {
    const room = maxTokens - head.length - 1;
    const ids = Int32Array.from([...head, ...body.slice(0, room), close]);
    const totalTokens = head.length + body.length + 1;
    return { ids, typeIds, isTruncated: body.length > room, totalTokens, isTotalMinimum: body.length > 10 * room };
  };
  return {
    implementation: 'fake',
    ordinaryIdEnd: 0,
    idEnd: 256,
    specialTokens: 2,
    texts,
    async tokenize(given, signal) {
      signal?.throwIfAborted();
      texts.push(...given.filter((input) => typeof input === 'string'));
      return given.map((input) => cut([open], typeof input === 'string' ? charactersOf(input) : [...input], null));
    },
    async tokenizePairs(query, passages, signal) {
      signal?.throwIfAborted();
      texts.push(query, ...passages);
      const head = [open, ...charactersOf(query), close];
      if (head.length + 2 > maxTokens) throw invalidField('query', 'leaves no room', { limit: maxTokens });
      return passages.map((passage) => {
        const { length } = passage;
        const typeIds = new Uint8Array(Math.min(maxTokens, head.length + length + 1)).fill(1, head.length);
        return cut(head, charactersOf(passage), typeIds);
      });
    },
    detailsOf: async (text) =>
      charactersOf(text).map((id, at) => ({ id, text: text[at] ?? '', isSpecial: false, start: at, end: at + 1 })),
    decode: async (given) => given.map((ids) => String.fromCharCode(...ids)),
    idsOf: (given) => new Set(given.flatMap(charactersOf)),
  };
}

/** A model with a fake tokenizer. */
export function createServed(manifest: Partial<ModelManifest> = {}): ServedModel & {
  readonly tokenizer: ReturnType<typeof createFakeTokenizer>;
} {
  const complete: ModelManifest = {
    ...plainFacts(4),
    modelId: 'm',
    folder: '/nowhere',
    graphPath: '/nowhere/model.onnx',
    precision: 'fp32',
    revision: 'r',
    sha256: 's',
    maxTokens: 16,
    hiddenSize: 4,
    vocabularySize: 256,
    pooling: 'mean',
    isNormalized: true,
    isMatryoshka: false,
    prompts: { query: '', document: '', unspecified: '' },
    scoreActivation: 'sigmoid',
    heads: ['dense'],
    selfChecks: [],
    ...manifest,
  };
  const tokenizer = createFakeTokenizer(complete.maxTokens);
  const { modelId } = complete;
  return {
    manifest: complete,
    tokenizer,
    identity: `${modelId}@r`,
    documentSkipIds: tokenizer.idsOf(complete.tokenRows.documentSkipTokens),
  };
}

/** What a fake scheduler was asked for. */
export interface FakeScheduler extends Scheduler {
  readonly loads: Load[];
  readonly jobs: Job[];
  releaseCount(): number;
  /** Makes every further admission fail. */
  refuse(error: ServiceError): void;
  /** Makes every further job wait for its abort. */
  hang(): void;
}

/** A scheduler that runs every job at once; rows of a text are its ids unless `rowOf` says otherwise. */
export function createFakeScheduler(
  rowOf: (item: RunItem, job: Job, index: number) => RunRow = ({ ids }) => ({
    values: Float32Array.from(ids),
    indices: null,
  }),
): FakeScheduler {
  const loads: Load[] = [];
  const jobs: Job[] = [];
  let releases = 0;
  let refusal: ServiceError | null = null;
  let isHanging = false;
  const run = async (job: Job): Promise<JobOutcome> => {
    job.signal.throwIfAborted();
    jobs.push(job);
    if (isHanging) {
      await new Promise((_, reject) => {
        job.signal.addEventListener('abort', () => {
          reject(job.signal.reason as Error);
        });
      });
    }
    const rows = job.items.map((item, index) => rowOf(item, job, index));
    rows.forEach(() => job.onItemDone?.());
    return { rows, queueMs: 2.4, computeMs: 3.6, device: 'cpu:0' };
  };
  return {
    loads,
    jobs,
    releaseCount: () => releases,
    refuse(error) {
      refusal = error;
    },
    hang() {
      isHanging = true;
    },
    admit(_modelId, load) {
      if (refusal !== null) throw refusal;
      loads.push(load);
      return { run, release: () => (releases += 1) };
    },
    gauges: emptyGauges(),
    predictedDrainMs: () => 0,
  };
}

/** A context around a scheduler. */
export const contextOf = (scheduler: Scheduler, rest: Partial<TaskContext> = {}): TaskContext => ({
  scheduler,
  lane: 'interactive',
  truncation: null,
  signal: new AbortController().signal,
  remainingMs: () => 1000,
  onProgress: null,
  stages: new CallStages(() => 0, 0, 'request-1', null),
  ...rest,
});

/** The ServiceError that a promise ends with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<ServiceError> {
  try {
    await promise;
  } catch (error) {
    return error as ServiceError;
  }
  throw new Error('it did not fail');
}
