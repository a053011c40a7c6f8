/** Owns what one call spent where: the times of its stages, and its spans where spans are recorded. */
import type { CallSpan, SpanAttributes, StageName } from './trace.ts';

/** Times of a call, for whoever waits for it. @unit ms */
export interface CallTimes {
  /** null: it did not come so far. */
  readonly tokenizeMs: number | null;
  readonly queueMs: number | null;
  readonly runMs: number | null;
  readonly totalMs: number;
}

/** What a job says about its way through the queue. */
interface RanJob {
  /** @unit ms */
  readonly queueMs: number;
  readonly device: string | null;
}

/** What is being run. */
interface JobFacts {
  readonly modelId: string;
  readonly items: readonly { readonly ids: { readonly length: number } }[];
}

/** The clock and the ledger of one call. */
export class CallStages {
  /** Names the request in the log. */
  readonly requestId: string;
  /** null while nobody records spans, so that calls then cost nothing more. */
  readonly span: CallSpan | null;
  /** Model that the call names or gets; null until it is known. */
  modelId: string | null = null;
  /** Texts and pairs that were tokenised, and their tokens after truncation. */
  inputs = 0;
  tokens = 0;
  readonly #nowMs: () => number;
  readonly #beganMs: number;
  #tokenizeMs: number | null = null;
  #queueMs: number | null = null;
  #runMs: number | null = null;

  /** The stages of a call that begins now. */
  constructor(nowMs: () => number, beganMs: number, requestId: string, span: CallSpan | null) {
    this.#nowMs = nowMs;
    this.#beganMs = beganMs;
    this.requestId = requestId;
    this.span = span;
  }

  /** What `work` gives: one tokenised text for each input of a model. */
  async tokenize<T extends { readonly ids: { readonly length: number } }>(
    modelId: string,
    work: () => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    const beganMs = this.#nowMs();
    const texts = await work();
    const endedMs = this.#nowMs();
    const tokens = tokensOf(texts);
    this.modelId = modelId;
    this.inputs += texts.length;
    this.tokens += tokens;
    this.#tokenizeMs = (this.#tokenizeMs ?? 0) + endedMs - beganMs;
    if (this.span !== null) this.#tell('tokenise', beganMs, endedMs, sizeOf(modelId, texts.length, tokens));
    return texts;
  }

  /** What `work` gives: the outcome of a job that waited for a device and then ran, or needed none. */
  async run<T extends RanJob>({ modelId, items }: JobFacts, work: () => Promise<T>): Promise<T> {
    const beganMs = this.#nowMs();
    const outcome = await work();
    const { device, queueMs } = outcome;
    if (device === null) return outcome;
    const endedMs = this.#nowMs();
    const startedMs = Math.min(endedMs, beganMs + queueMs);
    this.#queueMs = (this.#queueMs ?? 0) + startedMs - beganMs;
    this.#runMs = (this.#runMs ?? 0) + endedMs - startedMs;
    if (this.span !== null) {
      const size = sizeOf(modelId, items.length, tokensOf(items));
      this.#tell('queue', beganMs, startedMs, size);
      this.#tell('run', startedMs, endedMs, { ...size, 'trivec.device': device });
    }
    return outcome;
  }

  /** What `work` gives: the bytes of the result. */
  async encode(work: () => Buffer | Promise<Buffer>): Promise<Buffer> {
    if (this.span === null) return work();
    const beganMs = this.#nowMs();
    const bytes = await work();
    this.#tell('encode', beganMs, this.#nowMs(), { 'trivec.answer_bytes': bytes.length });
    return bytes;
  }

  /** The times until now. */
  times(nowMs: number): CallTimes {
    const totalMs = nowMs - this.#beganMs;
    return { tokenizeMs: this.#tokenizeMs, queueMs: this.#queueMs, runMs: this.#runMs, totalMs };
  }

  #tell(name: StageName, beganMs: number, endedMs: number, attributes: SpanAttributes): void {
    this.span?.stage(name, beganMs, endedMs, attributes);
  }
}

const tokensOf = (items: JobFacts['items']): number => items.reduce((sum, { ids }) => sum + ids.length, 0);

const sizeOf = (modelId: string, inputs: number, tokens: number): SpanAttributes => ({
  'trivec.model': modelId,
  'trivec.inputs': inputs,
  'trivec.tokens': tokens,
});
