/** Owns the way of spans to a collector: the only file that loads OpenTelemetry, itself loaded only where one is named. */
import {
  createTraceState,
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { parseTraceparent, type TraceHeaders, type Tracer } from './trace.ts';

/** What a tracer is made of. */
export interface OtlpOptions {
  /** Base address of the collector, such as `http://localhost:4318`. */
  readonly endpoint: string;
  readonly version: string;
  readonly log: { warn(fields: Record<string, unknown>, message: string): void };
}

/** Longest time that the last spans may take at the end of the process. @unit ms */
const flushMs = 500;
/** Longest time between two complaints about a collector that is away. @unit ms */
const complaintIntervalMs = 60_000;
/** Longest `tracestate` that is kept; the standard asks for no more. @unit characters */
const maxTracestateLength = 512;
const maxReasonLength = 300;

/** Address that spans are sent to: the collector's own path is added where it is missing. */
export function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (!url.pathname.endsWith('/v1/traces')) url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`;
  return url.href;
}

/**
 * A tracer that sends spans in batches. The variables that OpenTelemetry defines for headers, sampling, limits and the
 * name of the service are heeded by its own packages.
 */
export function createOtlpTracer({ endpoint, version, log }: OtlpOptions): Tracer {
  sayFailures(log);
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'trivec', 'service.version': version }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: tracesUrl(endpoint) }))],
  });
  const tracer = provider.getTracer('trivec', version);
  return {
    startCall(method, nowMs, headers) {
      // The clock of the service has no date, and never goes backwards; spans need one.
      const epochMs = Date.now() - nowMs;
      const attributes = { 'rpc.system': 'jsonrpc', 'rpc.service': 'rcp', 'rpc.method': method };
      const kind = SpanKind.SERVER;
      const span = tracer.startSpan(method, { kind, startTime: epochMs + nowMs, attributes }, parentOf(headers));
      const { traceId } = span.spanContext();
      const inside = trace.setSpan(ROOT_CONTEXT, span);
      return {
        traceId,
        stage(name, beganMs, endedMs, facts) {
          const step = tracer.startSpan(name, { startTime: epochMs + beganMs, attributes: facts }, inside);
          step.end(epochMs + endedMs);
        },
        end(endedMs, outcome) {
          span.setAttribute('trivec.outcome', outcome);
          if (outcome !== 'ok') span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
          span.end(epochMs + endedMs);
        },
      };
    },
    async close() {
      const shutdown = provider.shutdown().catch(() => undefined);
      await Promise.race([shutdown, new Promise((resolve) => setTimeout(resolve, flushMs).unref())]);
    },
  };
}

function parentOf({ traceparent, tracestate }: TraceHeaders): Context {
  const parent = parseTraceparent(traceparent);
  if (parent === null) return ROOT_CONTEXT;
  const { traceId, spanId, flags } = parent;
  const isKept = tracestate !== undefined && tracestate.length <= maxTracestateLength;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: flags & TraceFlags.SAMPLED,
    isRemote: true,
    ...(isKept ? { traceState: createTraceState(tracestate) } : {}),
  });
}

/** Spans that are lost are no reason to fail, and one line a minute says enough about them. */
function sayFailures(log: OtlpOptions['log']): void {
  let saidAtMs = -Infinity;
  const say = (message: string) => {
    const nowMs = performance.now();
    if (nowMs - saidAtMs < complaintIntervalMs) return;
    saidAtMs = nowMs;
    log.warn({ reason: message.slice(0, maxReasonLength) }, 'spans could not be exported');
  };
  const silent = () => undefined;
  diag.setLogger(
    { error: say, warn: say, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
