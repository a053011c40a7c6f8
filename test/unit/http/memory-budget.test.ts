import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createMemoryBudget, freeBytes } from '../../../src/http/memory-budget.ts';
import { reply } from './fake-service.ts';
import { createHarnesses, post } from './harness.ts';

const limits = { bodyBytes: 16_384, bodyTimeoutMs: 10_000 };
const { start, closeAll } = createHarnesses();
afterEach(closeAll);

describe('the memory for uploads', () => {
  it('is never over its bound, whatever requests claim and release, and is whole again at the end', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 0, max: 30_000 }), fc.boolean()), { maxLength: 60 }),
        (script) => {
          const budget = createMemoryBudget(50_000);
          const shares = Array.from({ length: 5 }, () => budget.open());
          const held = [0, 0, 0, 0, 0];
          for (const [request, bytes, isRelease] of script) {
            if (isRelease) {
              shares[request]?.release();
              held[request] = 0;
            } else if (shares[request]?.claim(bytes) === true) {
              held[request] = (held[request] ?? 0) + bytes;
            }
            const counted = held.reduce((sum, own) => sum + Math.max(0, own - freeBytes), 0);
            expect(counted).toBeLessThanOrEqual(50_000);
          }
          for (const share of shares) share.release();
          expect(budget.open().claim(50_000 + freeBytes)).toBe(true);
        },
      ),
    );
  });

  it('that is full refuses a body with -32011 and a time to come back, yet a ping gets through', async () => {
    const memory = createMemoryBudget(10_000);
    const other = memory.open();
    other.claim(10_000 + freeBytes);
    const harness = await start({ memory, limits });
    const big = await harness.exchange(post('/rcp/embed', Buffer.alloc(8192, ' ')));
    expect(big.status).toBe(200);
    expect(JSON.parse(big.body)).toMatchObject({ error: { code: -32011, data: { retryable: true } } });
    expect(big.headers.get('retry-after')).toBe('1');
    expect(harness.refused).toEqual(['crowded']);
    await harness.exchange(post('/rcp/ping', Buffer.from('{}')));
    expect(harness.service.calls).toHaveLength(1);
    other.release();
    await harness.exchange(post('/rcp/embed', Buffer.alloc(8192, ' ')));
    expect(harness.service.calls).toHaveLength(2);
  });

  it('is given back when a request has been answered', async () => {
    const memory = createMemoryBudget(10_000);
    const harness = await start({ memory, limits });
    for (let request = 0; request < 5; request += 1)
      await harness.exchange(post('/rcp/embed', Buffer.alloc(8192, ' ')));
    expect(harness.service.calls).toHaveLength(5);
    expect(memory.open().claim(10_000)).toBe(true);
  });

  it('that is full lets every small answer pass, also that of a body that used up its free bytes', async () => {
    const memory = createMemoryBudget(10_000);
    const other = memory.open();
    other.claim(10_000 + freeBytes);
    const harness = await start({ memory, limits });
    const call = () => harness.exchange(post('/rcp/embed', Buffer.alloc(freeBytes, ' ')));
    harness.service.handle = () => reply(`"${'x'.repeat(freeBytes - 2)}"`);
    expect((await call()).body).toHaveLength(freeBytes);
    harness.service.handle = () => reply(`"${'x'.repeat(freeBytes - 1)}"`);
    expect(JSON.parse((await call()).body)).toMatchObject({ error: { code: -32011 } });
    other.release();
  });

  it('counts an answer until it is sent: what does not fit is -32011 under its own id', async () => {
    const memory = createMemoryBudget(10_000);
    const harness = await start({ memory, limits });
    harness.service.handle = () => reply(`"${'x'.repeat(20_000)}"`);
    const answer = await harness.exchange(post('/rcp/embed', Buffer.from('{"id":7}')));
    expect(JSON.parse(answer.body)).toMatchObject({ id: 7, error: { code: -32011 } });
    harness.service.handle = () => reply(`"${'x'.repeat(9_000)}"`);
    for (let request = 0; request < 3; request += 1) {
      expect((await harness.exchange(post('/rcp/embed', Buffer.from('{"id":7}')))).body).toHaveLength(9_002);
    }
  });
});
