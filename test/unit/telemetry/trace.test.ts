import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tracesUrl } from '../../../src/telemetry/otlp.ts';
import { parseTraceparent } from '../../../src/telemetry/trace.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

describe('a traceparent', () => {
  it('of the first version names its trace, the span of the caller and the flags', () => {
    expect(parseTraceparent(`00-${traceId}-${spanId}-01`)).toEqual({ traceId, spanId, flags: 1 });
  });

  it('of a later version may say more', () => {
    expect(parseTraceparent(`cc-${traceId}-${spanId}-00-what-comes`)).toEqual({ traceId, spanId, flags: 0 });
  });

  it.each([
    ['nothing', undefined],
    ['an empty one', ''],
    ['version ff', `ff-${traceId}-${spanId}-01`],
    ['a longer one of the first version', `00-${traceId}-${spanId}-01-more`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['a span of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['capitals', `00-${traceId.toUpperCase()}-${spanId}-01`],
    ['two in one', `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ['a short trace', `00-${traceId.slice(1)}-${spanId}-01`],
    ['flags that are no number', `00-${traceId}-${spanId}-0x`],
  ])('that is %s counts as none', (_, header) => {
    expect(parseTraceparent(header)).toBeNull();
  });

  it('of any other text never throws, and is never taken for one', () => {
    fc.assert(fc.property(fc.string(), (text) => parseTraceparent(text) === null));
  });
});

describe('the address of a collector', () => {
  it.each([
    ['http://localhost:4318', 'http://localhost:4318/v1/traces'],
    ['http://localhost:4318/', 'http://localhost:4318/v1/traces'],
    ['https://otel.example/base/', 'https://otel.example/base/v1/traces'],
    ['https://otel.example/v1/traces', 'https://otel.example/v1/traces'],
  ])('%s takes spans at %s', (endpoint, url) => {
    expect(tracesUrl(endpoint)).toBe(url);
  });
});
