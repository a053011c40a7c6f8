/** Owns what the service knows of tracing: spans of calls, and that without a collector there are none at all. */

/** The steps of a call that are told apart, in the order in which they happen. */
export type StageName = 'tokenise' | 'queue' | 'run' | 'encode';

/** Facts about a call or a step: names and counts, never text. */
export type SpanAttributes = Readonly<Record<string, string | number>>;

/** What the headers of a request say of the trace that it belongs to. */
export interface TraceHeaders {
  /** As it was received; whether it is valid is judged here. */
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** The span of one call. Times are those of the service's clock. */
export interface CallSpan {
  readonly traceId: string;
  /** Records a step that is over. @unit ms */
  stage(name: StageName, beganMs: number, endedMs: number, attributes: SpanAttributes): void;
  /** Ends the span; `outcome` is `ok` or the name of an error. @unit ms */
  end(endedMs: number, outcome: string): void;
}

/** Where calls begin their spans. */
export interface Tracer {
  /** Begins the span of a call now. @param nowMs the same moment by the service's clock */
  startCall(method: string, nowMs: number, headers: TraceHeaders): CallSpan;
  /** Sends what was not sent yet, for a bounded time. */
  close(): Promise<void>;
}

/** A parsed `traceparent`. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

const traceparentPattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/**
 * The parts of a `traceparent`, or null where it is not valid: then the call begins a trace of its own.
 * @source W3C Trace Context, section 3.2
 */
export function parseTraceparent(header: string | undefined): TraceParent | null {
  const match = traceparentPattern.exec(header ?? '');
  if (match === null) return null;
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = match;
  // What later versions may add is of no concern; the first has nothing to add.
  if (version === 'ff' || (version === '00' && rest !== undefined)) return null;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}
