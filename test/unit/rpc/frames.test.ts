import { describe, expect, it } from 'vitest';
import { createHarness, limits, stdioSession, type Answer } from './harness.ts';

const ping = (id: string | number, nonce?: string) => ({ id, method: 'ping', params: { nonce } });
const embed = (id: number, inputs: unknown = ['a']) => ({ id, method: 'embed', params: { inputs } });
const cancel = (id: number) => ({ method: 'notifications/cancel', params: { id } });
const asks = (members: readonly unknown[]) => JSON.stringify(members);
const shapes = (answer: unknown) =>
  (answer as Answer[]).map(({ id, error }) => `${JSON.stringify(id)} ${error?.code ?? 'ok'}`);

describe('the answer to a batch', () => {
  it('has one entry per request, in their order, and none for notifications', async () => {
    const { ask } = createHarness();
    const members = [ping(3), cancel(9), embed(1), 5, { id: 2, method: 'no/such' }, { method: 'embed' }];
    expect(shapes(await ask(asks(members)))).toEqual(['3 ok', '1 ok', 'null -32600', '2 -32004']);
  });

  it('is an array of one for a batch of one, and an object for an empty one', async () => {
    const { ask } = createHarness();
    expect(shapes(await ask(asks([ping(1)])))).toEqual(['1 ok']);
    expect(await ask('[]')).toMatchObject({ id: null, error: { code: -32600 } });
  });

  it('is silence where nothing wants an answer', async () => {
    const { ask } = createHarness();
    expect(await ask(asks([cancel(1), { method: 'notifications/x' }, { method: 'embed' }]))).toBeUndefined();
  });

  it('is answered by position where an id comes twice', async () => {
    const { ask } = createHarness();
    const answer = (await ask(asks([ping(1, 'a'), ping(1, 'b')]))) as Answer[];
    expect(answer.map(({ id, result }) => [id, result?.['nonce']])).toEqual([
      [1, 'a'],
      [1, 'b'],
    ]);
  });

  it('keeps the characters of every id', async () => {
    const { reply } = createHarness();
    const text = '[{"id":9007199254740993,"method":"ping"},{"id":1e400,"method":"ping","params":{"nonce":1.50}}]';
    expect((await reply(text)).body?.toString()).toBe(
      '[{"jsonrpc":"2.0","id":9007199254740993,"result":{}},{"jsonrpc":"2.0","id":1e400,"result":{"nonce":1.50}}]',
    );
  });

  it('leaves the good members alone when one fails', async () => {
    const { ask } = createHarness();
    expect(shapes(await ask(asks([embed(1), embed(2, [1]), embed(3)])))).toEqual(['1 ok', '2 -32602', '3 ok']);
  });

  it('makes Node warn of no leak, however many of its calls are in flight at once', async () => {
    const { ask } = createHarness();
    const warnings: Error[] = [];
    const hear = (warning: Error) => warnings.push(warning);
    process.on('warning', hear);
    const { signal } = new AbortController();
    const batch = asks(Array.from({ length: limits.maxBatchMembers }, (_, id) => embed(id)));
    await Promise.all([ask(batch, { signal }), ask(batch, { signal })]);
    await new Promise(setImmediate);
    process.off('warning', hear);
    expect(warnings).toEqual([]);
  });

  it('has the members after initialize see the new state, and those before it not', async () => {
    const initialize = { id: 1, method: 'initialize', params: { protocolVersion: 1 } };
    const failing = { id: 1, method: 'initialize', params: { protocolVersion: 0 } };
    const shapesOf = async (...members: unknown[]) =>
      shapes(await createHarness().ask(asks(members), { session: stdioSession(false) }));
    expect(await shapesOf(initialize, embed(2))).toEqual(['1 ok', '2 ok']);
    expect(await shapesOf(embed(2), initialize)).toEqual(['2 -32001', '1 ok']);
    expect(await shapesOf(initialize, { ...initialize, id: 2 })).toEqual(['1 ok', '2 -32600']);
    expect(await shapesOf(failing, embed(2))).toEqual(['1 -32002', '2 -32001']);
  });

  it('has one entry for a member that a later one cancels, and a cancel before its target changes nothing', async () => {
    const { ask, scheduler } = createHarness();
    const session = stdioSession(true);
    expect(shapes(await ask(asks([cancel(5), embed(5)]), { session }))).toEqual(['5 ok']);
    scheduler.hang();
    expect(shapes(await ask(asks([embed(5), ping(6), cancel(5)]), { session }))).toEqual(['5 -32006', '6 ok']);
  });

  it('can lose a member to a later frame', async () => {
    const { ask, scheduler } = createHarness();
    scheduler.hang();
    const session = stdioSession(true);
    const answer = ask(asks([embed(5), ping(6)]), { session });
    await ask(JSON.stringify(cancel(5)), { session });
    expect(shapes(await answer)).toEqual(['5 -32006', '6 ok']);
  });

  it('says that a shutdown was obeyed, after everything was answered', async () => {
    const { reply } = createHarness();
    const { body, isShutdown } = await reply(asks([ping(1), { id: 2, method: 'shutdown' }, ping(3)]));
    expect(isShutdown).toBe(true);
    expect(shapes(JSON.parse(body?.toString() ?? ''))).toEqual(['1 ok', '2 ok', '3 ok']);
  });

  it('applies the method in the path to each member', async () => {
    const { ask } = createHarness();
    expect(shapes(await ask(asks([ping(1), { id: 2, method: 'info' }]), { pathMethod: 'ping' }))).toEqual([
      '1 ok',
      '2 -32600',
    ]);
  });
});

describe('the member cap', () => {
  const pings = (count: number) => Array.from({ length: count }, (_, at) => ping(at));

  it('itself is served', async () => {
    expect(await createHarness().ask(asks(pings(8)))).toHaveLength(8);
  });

  it('plus one is refused as a whole, in one object that names it, and runs nothing', async () => {
    const { ask, scheduler, records } = createHarness();
    const answer = (await ask(asks([...pings(8), embed(9)]))) as Answer;
    expect(answer.id).toBeNull();
    expect(answer.error).toMatchObject({ code: -32602, data: { limit: 8, received: 9, retryable: false } });
    expect([scheduler.loads, records]).toEqual([[], []]);
  });

  it('plus one of nothing but notifications is silence, and none is obeyed', async () => {
    const { ask, reply, scheduler, records } = createHarness();
    scheduler.hang();
    const session = stdioSession(true);
    void ask(JSON.stringify(embed(1)), { session });
    const text = asks(Array.from({ length: 9 }, () => cancel(1)));
    expect(await reply(text, { session })).toMatchObject({ body: null, isShutdown: false });
    expect(records).toHaveLength(0);
  });
});

describe('a frame that is no call', () => {
  it.each([
    ['not json', -32700],
    ['', -32700],
    ['1', -32600],
    ['{}', -32600],
  ])('%j is answered with id null and %d, never retryable', async (text, code) => {
    expect(await createHarness().ask(text)).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { code, data: { retryable: false } },
    });
  });

  it('that never became text is answered under the id that was found, or null', () => {
    const { frames } = createHarness();
    const parsed = (rawId: string | null) =>
      JSON.parse(frames.refuse('tooLarge', 'too large', rawId).body?.toString() ?? '') as Answer;
    expect(parsed('7')).toMatchObject({ id: 7, error: { code: -32013, data: { retryable: false } } });
    expect(parsed(null).id).toBeNull();
  });
});

describe('the wish for progress', () => {
  it.each([
    ['{"id":1,"method":"embed","params":{"_meta":{"progressToken":"t"}}}', true],
    ['{"id":1,"method":"embed","params":{"_meta":{"progressToken":7}}}', true],
    ['{"id":1,"method":"embed","params":{"_meta":{"progressToken":{}}}}', false],
    ['{"id":1,"method":"embed","params":{"progressToken":"t"}}', false],
    ['{"method":"embed","params":{"_meta":{"progressToken":"t"}}}', false],
    ['[{"id":1,"method":"embed","params":{"_meta":{"progressToken":"t"}}}]', false],
    ['{"id":1,"method":"embed","params":{"inputs":["\\"progressToken\\""]}}', false],
    ['"progressToken"', false],
    ['{"progressToken"', false],
  ])('%s: %s', (text, wants) => {
    expect(createHarness().frames.wantsProgress(text)).toBe(wants);
  });
});
