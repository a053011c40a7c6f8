/** Rules of which server is asked next, and of when all are given up. */
import { describe, expect, it } from 'vitest';
import { BulkFailure } from '../../../src/bulk/row.ts';
import { RcpError } from '../../../src/client/index.ts';
import { createServerPool, type Server } from '../../../src/bulk/source/server-pool.ts';

const never = new AbortController().signal;
const poolOf = (patienceMs: number) => createServerPool(['http://a'], { patienceMs, onNote: () => undefined });

/** A refusal as a server may send it, whatever it says of the wait. */
const full = (asked: unknown) => new RcpError(-32011, 'full', { data: { retryAfterMs: asked as number } });

describe('a server that turns calls away', () => {
  it.each([0, -5, Number.NaN, '1s', undefined])('is left alone for a while, though it says %s', (asked) => {
    const pool = poolOf(1e9);
    const [server] = pool.servers as [Server];
    pool.overloaded(server, full(asked));
    expect(server.freeAtMs).toBeGreaterThan(performance.now() + 100);
  });

  it('is asked nothing more once patience is over, and given up when its last call has ended', async () => {
    const pool = poolOf(0);
    const server = await pool.take(never);
    pool.overloaded(server, full(0));
    server.freeAtMs = 0;
    const stop = new AbortController();
    const next = pool.take(stop.signal);
    stop.abort(new Error('still waiting'));
    await expect(next).rejects.toThrow('still waiting');
    pool.giveBack(server);
    await expect(pool.take(never)).rejects.toThrow(BulkFailure);
  });
});
