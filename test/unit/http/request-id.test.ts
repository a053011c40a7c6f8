import { afterEach, describe, expect, it } from 'vitest';
import { post, request, startHarness, type Harness } from './harness.ts';

let harness: Harness;
afterEach(() => harness.close(0));

const idOf = (answer: { headers: ReadonlyMap<string, string> }) => answer.headers.get('x-request-id') ?? '';
const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

describe('the name of a request', () => {
  it('is the caller’s own where it is short and clean, and reaches the service', async () => {
    harness = await startHarness();
    const answer = await harness.exchange(post('/rcp', '{}', { 'X-Request-Id': 'a1b2-c3.d4:e5_f6' }));
    expect(idOf(answer)).toBe('a1b2-c3.d4:e5_f6');
    expect(harness.service.calls[0]?.context.requestId).toBe('a1b2-c3.d4:e5_f6');
  });

  it.each([
    ['there is none', {}],
    ['it is empty', { 'X-Request-Id': '' }],
    ['it is long', { 'X-Request-Id': 'a'.repeat(65) }],
    ['it has a space', { 'X-Request-Id': 'a b' }],
    ['it could be read as more than a name', { 'X-Request-Id': '{"level":60}' }],
  ])('is made up where %s', async (_, headers) => {
    harness = await startHarness();
    const answer = await harness.exchange(post('/rcp', '{}', headers));
    expect(idOf(answer)).toMatch(uuid);
    expect(harness.service.calls[0]?.context.requestId).toBe(idOf(answer));
  });

  it.each([
    ['a route that is not there', request('GET', '/nothing')],
    ['health', request('GET', '/health/live')],
    ['a method that is not allowed', request('PUT', '/rcp')],
    ['a host that is none', request('GET', '/health/live', '', { Host: 'a b' })],
  ])('goes back with the answer of %s', async (_, bytes) => {
    harness = await startHarness();
    expect(idOf(await harness.exchange(bytes))).toMatch(uuid);
  });

  it('is another for each request', async () => {
    harness = await startHarness();
    const ids = [idOf(await harness.exchange(post('/rcp'))), idOf(await harness.exchange(post('/rcp')))];
    expect(new Set(ids).size).toBe(2);
  });

  it('is in the line of a request that a bug ended', async () => {
    const lines: Record<string, unknown>[] = [];
    harness = await startHarness({ log: { error: (fields: Record<string, unknown>) => lines.push(fields) } });
    harness.service.handle = () => {
      throw new Error('a bug');
    };
    await harness.exchange(post('/rcp', '{}', { 'X-Request-Id': 'r-9' }));
    expect(lines).toMatchObject([{ requestId: 'r-9' }]);
  });
});

describe('the headers of a trace', () => {
  it('reach the service as they are', async () => {
    harness = await startHarness();
    await harness.exchange(post('/rcp', '{}', { Traceparent: '00-a-b-01', Tracestate: 'x=1' }));
    expect(harness.service.calls[0]?.context).toMatchObject({ traceparent: '00-a-b-01', tracestate: 'x=1' });
  });
});

describe('Server-Timing', () => {
  it('has the stages that the call came to, in milliseconds', async () => {
    harness = await startHarness();
    const times = { tokenizeMs: 0.25, queueMs: 12, runMs: null, totalMs: 13.37 };
    harness.service.handle = () => ({ body: Buffer.from('{}'), retryAfterMs: null, isShutdown: false, times });
    const { headers } = await harness.exchange(post('/rcp'));
    expect(headers.get('server-timing')).toBe('tokenise;dur=0.3, queue;dur=12.0, total;dur=13.4');
  });
});
