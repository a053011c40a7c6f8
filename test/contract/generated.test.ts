import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { RcpClient } from '../support/harness/client.ts';
import { failure, ok, pong, request } from '../support/harness/frames.ts';
import { answers, onBoth } from '../support/harness/rows.ts';

const maxMembers = 8;
const maxInputs = 4;

interface Frame {
  id?: unknown;
  jsonrpc?: unknown;
  method?: unknown;
  params?: unknown;
}
const isObject = (value: unknown): value is Frame =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isId = (id: unknown) => typeof id === 'string' || typeof id === 'number';
const invalid = failure(null, -32600);

/** The oracle, written from the rules: what one member is answered with, null for nothing. */
function replyTo(member: unknown, isStdio: boolean): object | null {
  if (!isObject(member)) return invalid;
  if ('id' in member && !isId(member.id)) return invalid;
  if ('jsonrpc' in member && member.jsonrpc !== '2.0') return invalid;
  if (typeof member.method !== 'string') return invalid;
  if (!('id' in member)) return null;
  const { id, method, params = null } = member;
  switch (method) {
    case 'notifications/cancel':
      return failure(id, -32600);
    case 'initialize':
      if (isStdio) return failure(id, -32600);
      return params === null || isObject(params) ? ok(id, { protocolVersion: 1 }) : failure(id, -32602);
    case 'ping':
    case 'info':
      if (params !== null && !isObject(params)) return failure(id, -32602, { field: 'params' });
      return method === 'ping'
        ? replyToPing(id, params as Record<string, unknown> | null)
        : ok(id, { protocolVersion: 1 });
    case 'embed':
      if (params !== null && !isObject(params)) return failure(id, -32602, { field: 'params' });
      return replyToEmbed(id, (params as Record<string, unknown> | null) ?? {});
    case 'retrieve':
      return failure(id, -32003);
    default:
      return failure(id, -32004);
  }
}

function replyToPing(id: unknown, params: Record<string, unknown> | null): object {
  const nonce = params?.['nonce'] ?? null;
  if (nonce === null) return pong(id);
  return isId(nonce) ? pong(id, nonce) : failure(id, -32602, { field: 'nonce' });
}

function replyToEmbed(id: unknown, params: Record<string, unknown>): object {
  const name = (params['inputs'] ?? null) === null && (params['texts'] ?? null) !== null ? 'texts' : 'inputs';
  const inputs = params[name];
  if (!Array.isArray(inputs)) return failure(id, -32602, { field: name });
  const bad = inputs.findIndex((input) => typeof input !== 'string');
  if (bad !== -1) return failure(id, -32602, { field: `${name}[${bad}]` });
  if (inputs.length > maxInputs) return failure(id, -32602, { field: name, limit: maxInputs, received: inputs.length });
  return ok(id, {
    vectors: inputs.map((text: string) => Array.from({ length: 4 }, (_, index) => Buffer.from(text)[index] ?? 0)),
  });
}

/** True where a later member cancels this one, which may come too late. */
const isCancelled = (members: readonly unknown[], index: number, id: unknown) =>
  members
    .slice(index + 1)
    .some(
      (other) =>
        isObject(other) &&
        !('id' in other) &&
        other.method === 'notifications/cancel' &&
        isObject(other.params) &&
        other.params.id === id,
    );

const ids = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom<unknown>(1, 2, 3, '1', 'a', '', 1.5, -7) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, {}, [1], true) },
);
const methods = fc.constantFrom<unknown>(
  'ping',
  'ping',
  'embed',
  'embed',
  'embed',
  'info',
  'initialize',
  'retrieve',
  'no/such',
  'PING',
  'toString',
  'notifications/cancel',
  'notifications/x',
  1,
  null,
  {},
);
const text = fc.constantFrom<unknown>('a', 'bcd', '', 'é😀', 'a', 'x', 5, null);
const params = fc.oneof(
  fc.record<Record<string, unknown>>(
    {
      inputs: fc.oneof(
        { weight: 5, arbitrary: fc.array(text, { maxLength: 5 }) },
        { weight: 1, arbitrary: fc.constantFrom<unknown>(null, 'a', 5, {}) },
      ),
      texts: fc.array(text, { maxLength: 2 }),
      nonce: fc.constantFrom<unknown>('n', 0, 7, null, {}, true),
      id: ids,
      zz: fc.jsonValue({ maxDepth: 2 }),
    },
    { requiredKeys: [] },
  ),
  fc.constantFrom<unknown>(null, [], 'x', 5),
);
const call = fc.record<Frame>(
  { jsonrpc: fc.constantFrom<unknown>('2.0', '2.0', '2.0', '2.0', '1.0', 2), id: ids, method: methods, params },
  { requiredKeys: [] },
);
const good = fc.record({
  jsonrpc: fc.constant('2.0'),
  id: fc.constantFrom(1, 2, '1'),
  method: fc.constantFrom('ping', 'embed', 'info'),
});
const nested = fc.array(call, { maxLength: 2 });
const member: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: call },
  { weight: 2, arbitrary: good },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(1, null, 'x', true, {}, [], 1.5) },
  { weight: 1, arbitrary: nested },
);
const members = fc.oneof(
  { weight: 9, arbitrary: fc.array(member, { maxLength: maxMembers }) },
  { weight: 1, arbitrary: fc.array(member, { minLength: maxMembers + 1, maxLength: 12 }) },
  {
    weight: 1,
    arbitrary: fc.array(fc.record({ method: fc.constantFrom('ping', 'notifications/x') }), {
      minLength: 1,
      maxLength: 12,
    }),
  },
);

async function check(client: RcpClient, batch: readonly unknown[]): Promise<void> {
  const frame = JSON.stringify(batch);
  const replies = batch.map((one) => replyTo(one, client.transport === 'stdio'));
  const isSilent = replies.every((reply) => reply === null);
  if (batch.length === 0) return answers(client, frame, invalid);
  if (isSilent) return client.tell(frame);
  if (batch.length > maxMembers) {
    return answers(client, frame, failure(null, -32602, { limit: maxMembers, received: batch.length }));
  }
  const { value } = await client.ask(frame);
  const expected = replies.flatMap((reply, index) => {
    if (reply === null) return [];
    const one = batch[index] as Frame;
    const mayEndEarly = isObject(one) && one.method === 'embed' && isCancelled(batch, index, one.id);
    return [{ reply, orElse: mayEndEarly ? failure(one.id, -32006) : reply }];
  });
  expect(value, frame).toHaveLength(expected.length);
  expected.forEach(({ reply, orElse }, index) => {
    const isCancelledReply = value[index].error?.code === -32006;
    expect(value[index], frame).toMatchObject(isCancelledReply ? orElse : reply);
  });
}

describe('generated batches', () => {
  onBoth(
    'BA-09 every batch is answered as the rules say, whatever is mixed in it: 200 batches',
    async (client) => {
      await fc.assert(
        fc.asyncProperty(members, (batch) => check(client, batch)),
        { numRuns: 200, seed: 1_729 },
      );
      await answers(client, request('last', 'ping'), pong('last'));
    },
    { settings: { maxQueuedItems: 1000 } },
  );
});
