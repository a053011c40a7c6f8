/** Owns mixed traffic: callers that behave and callers that do not, all at once, for a while. */
import { createHttpClient, type HttpClient } from '../../src/bench/http-client.ts';
import { runCallers } from '../../src/bench/callers.ts';
import { generateHttp } from '../fuzz/generate.ts';
import { attackHttp } from '../fuzz/http-target.ts';
import { below, oneIn, type Random } from '../fuzz/random.ts';
import { createCallMaker, frameOf } from './calls.ts';
import type { Ledger } from './ledger.ts';
import { leaveInAnswer, leaveInBody, pipeline } from './rude.ts';

const callers = 8;
/** Longest wait for one answer: the deadline of the server and time for an executor that was killed. @unit ms */
const timeoutMs = 60_000;

/** Traffic until `isOver`; every call is in the ledger, and no connection is left open. */
export async function runTraffic(options: {
  readonly baseUrl: string;
  readonly random: Random;
  readonly ledger: Ledger;
  readonly isOver: () => boolean;
}): Promise<void> {
  const { baseUrl, random, ledger, isOver } = options;
  const port = Number(new URL(baseUrl).port);
  const calls = createCallMaker(random);
  const client = createHttpClient(baseUrl, { maxConnections: callers, timeoutMs });
  const headers = { 'rcp-session': 'soak' };
  const session = createHttpClient(baseUrl, { maxConnections: callers * 2, timeoutMs, headers });

  const send = async (through: HttpClient, id: string, frame: string) => {
    const { status, body } = await through.post('/rcp', frame);
    if (status !== 200) ledger.faults.push(`${id}: status ${status}`);
    ledger.close(id, body.toString());
  };
  const one = async (isBad: boolean) => {
    const id = ledger.open();
    await send(client, id, frameOf(id, isBad ? calls.bad() : calls.good()));
  };
  const cancelled = async () => {
    const id = ledger.open();
    const answered = send(session, id, frameOf(id, calls.good()));
    const cancel = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancel', params: { id } });
    await session.post('/rcp', cancel);
    await answered;
  };
  const behind = async (isSlow: boolean) => {
    const ids = Array.from({ length: 1 + below(random, 4) }, () => ledger.open());
    const bodies = await pipeline(
      port,
      ids.map((id) => frameOf(id, calls.good())),
      isSlow,
    );
    if (bodies.length !== ids.length) ledger.faults.push(`${bodies.length} answers for ${ids.length} pipelined calls`);
    ids.forEach((id, at) => {
      ledger.close(id, bodies[at] ?? '');
    });
  };
  const left = async () => {
    const id = ledger.open();
    const frame = frameOf(id, calls.good());
    if (oneIn(random, 3)) await leaveInBody(port, frame);
    else await leaveInAnswer(port, frame, oneIn(random, 2));
    ledger.close(id, null);
  };
  const attack = async () => {
    ledger.faults.push(...(await attackHttp(port, generateHttp(random))));
  };
  const step = (): Promise<void> => {
    const chance = below(random, 100);
    if (chance < 60) return one(false);
    if (chance < 70) return one(true);
    if (chance < 77) return cancelled();
    if (chance < 84) return behind(false);
    if (chance < 87) return behind(true);
    if (chance < 95) return left();
    return attack();
  };
  try {
    await runCallers(
      callers,
      () => (isOver() ? null : step),
      async (work) => {
        try {
          await work();
        } catch (error) {
          ledger.faults.push(`a call failed: ${(error as Error).message}`);
        }
      },
    );
  } finally {
    client.close();
    session.close();
  }
}
