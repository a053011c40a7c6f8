/** Owns crowds: connections that do nothing, and callers that vanish before their turn. */
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { createHttpClient } from '../../src/bench/http-client.ts';
import { sumOf } from '../../src/bench/server-metrics.ts';
import type { Check } from './checks.ts';
import { frameOf } from './calls.ts';
import { leaveInAnswer } from './rude.ts';

/** Handles of this process and of the server beside the connections. */
const spareHandles = 300;
/** How many connections are opened at a time: below the usual backlog of a listener. */
const openedAtOnce = 100;
const liveCalls = 20;
const vanished = 100;
/** Longest wait for anything. @unit ms */
const timeoutMs = 60_000;

function openOne(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.on('error', () => undefined);
      resolve(socket);
    });
  });
}

/** Whether calls are answered while so many connections are open and silent. */
export async function checkIdleConnections(baseUrl: string, count: number, maxHandles: number): Promise<Check> {
  const rule = `${liveCalls} calls beside ${count} idle connections are answered, and those stay open`;
  if (count + spareHandles > maxHandles) return { rule, found: `only ${maxHandles} handles allowed`, isMet: null };
  const port = Number(new URL(baseUrl).port);
  const sockets: Socket[] = [];
  const client = createHttpClient(baseUrl, { maxConnections: 1, timeoutMs });
  try {
    while (sockets.length < count) {
      const many = Math.min(openedAtOnce, count - sockets.length);
      sockets.push(...(await Promise.all(Array.from({ length: many }, () => openOne(port)))));
    }
    let answered = 0;
    let slowestMs = 0;
    for (let call = 0; call < liveCalls; call += 1) {
      const frame = frameOf('live', { method: 'embed', params: { inputs: [`call ${call}`] } });
      const { body, elapsedMs } = await client.post('/rcp/embed', frame);
      if (body.includes('"vectors"')) answered += 1;
      slowestMs = Math.max(slowestMs, elapsedMs);
    }
    const open = sockets.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded).length;
    return {
      rule,
      found: `${answered} answered, slowest ${slowestMs.toFixed(0)} ms, ${open} open`,
      isMet: answered === liveCalls && open === count,
    };
  } finally {
    for (const socket of sockets) socket.destroy();
    client.close();
  }
}

/** Whether the work of callers that vanish while it waits is never run. */
export async function checkVanished(baseUrl: string, texts: readonly string[]): Promise<Check> {
  const port = Number(new URL(baseUrl).port);
  const client = createHttpClient(baseUrl, { maxConnections: 16, timeoutMs });
  const runInputs = async () => sumOf((await client.get('/metrics')).body.toString(), 'trivec_run_inputs_total') ?? 0;
  try {
    const before = await runInputs();
    // A list in the lane of those who wait least keeps the devices busy; what comes behind it in bulk has to wait.
    const blockers = Array.from({ length: 4 }, (_, at) => {
      const inputs = texts.map((text) => `${at} ${text}`);
      const params = { inputs, 'x-trivec': { priority: 'interactive' } };
      return client.post('/rcp/embed', frameOf(`blocker-${at}`, { method: 'embed', params }));
    });
    await wait(200);
    const bulk = { 'x-trivec': { priority: 'bulk' } };
    await Promise.all(
      Array.from({ length: vanished }, (_, at) => {
        const params = { inputs: [`vanished ${at} ${texts[at % texts.length] ?? ''}`], ...bulk };
        return leaveInAnswer(port, frameOf(`gone-${at}`, { method: 'embed', params }), false);
      }),
    );
    const answers = await Promise.all(blockers);
    const stayed = answers.filter(({ body }) => body.includes('"vectors"')).length * texts.length;
    await client.post('/rcp/embed', frameOf('last', { method: 'embed', params: { inputs: ['the last'], ...bulk } }));
    const run = (await runInputs()) - before;
    return {
      rule: `of ${vanished} callers that vanish while their work waits, none is worked for`,
      found: `${run} texts run, ${stayed + 1} by callers that stayed`,
      isMet: run === stayed + 1,
    };
  } finally {
    client.close();
  }
}
