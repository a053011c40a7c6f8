import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { createUploadBudget, freeUploadBytes } from '../../../src/http/upload-budget.ts';
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
          const budget = createUploadBudget(50_000);
          const shares = Array.from({ length: 5 }, () => budget.open());
          const held = [0, 0, 0, 0, 0];
          for (const [request, bytes, isRelease] of script) {
            if (isRelease) {
              shares[request]?.release();
              held[request] = 0;
            } else if (shares[request]?.claim(bytes) === true) {
              held[request] = (held[request] ?? 0) + bytes;
            }
            const counted = held.reduce((sum, own) => sum + Math.max(0, own - freeUploadBytes), 0);
            expect(counted).toBeLessThanOrEqual(50_000);
          }
          for (const share of shares) share.release();
          expect(budget.open().claim(50_000 + freeUploadBytes)).toBe(true);
        },
      ),
    );
  });

  it('that is full refuses a body with -32011 and a time to come back, yet a ping gets through', async () => {
    const uploads = createUploadBudget(10_000);
    const other = uploads.open();
    other.claim(10_000 + freeUploadBytes);
    const harness = await start({ uploads, limits });
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
    const uploads = createUploadBudget(10_000);
    const harness = await start({ uploads, limits });
    for (let request = 0; request < 5; request += 1)
      await harness.exchange(post('/rcp/embed', Buffer.alloc(8192, ' ')));
    expect(harness.service.calls).toHaveLength(5);
    expect(uploads.open().claim(10_000)).toBe(true);
  });
});
