import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { runCallers } from '../../../src/bench/callers.ts';
import { createHttpClient } from '../../../src/bench/http-client.ts';
import { runOpenLoop } from '../../../src/bench/open-loop.ts';
import { createRequests } from '../../../src/bench/requests.ts';
import { createSend } from '../../../src/bench/send.ts';
import { createTally, failureTotal } from '../../../src/bench/tally.ts';
import type { Counts } from '../../../src/bench/tally.ts';
import { teiTarget } from '../../../src/bench/targets/tei.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `text ${index}`);
const requestsOf = (texts: readonly string[], batch: number, maxCalls: number, isOver = () => false) =>
  createRequests(texts, { kind: 'document', isBulk: false, batch, maxCalls, isOver });

describe('the order of texts', () => {
  it('every text is sent once a pass, in its order, in calls of the batch at most', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 3 }),
        (count, batch, passes) => {
          const texts = numbered(count);
          const next = requestsOf(texts, batch, passes * Math.ceil(count / batch));
          const sent: string[] = [];
          for (let request = next(); request !== null; request = next()) {
            expect(request.texts.length).toBeLessThanOrEqual(batch);
            sent.push(...request.texts);
          }
          expect(sent).toEqual(Array.from({ length: passes }, () => texts).flat());
        },
      ),
    );
  });

  it('ends as soon as it is over', () => {
    let asked = 0;
    const next = requestsOf(numbered(3), 1, Infinity, () => ++asked > 5);
    expect(Array.from({ length: 7 }, next).filter((request) => request !== null)).toHaveLength(5);
  });
});

describe('a closed loop against a server', () => {
  let server: Server;
  let mostInFlight = 0;
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  /** A server in the manner of TEI that answers each text as `reply` says. */
  async function listen(reply: (text: string, response: ServerResponse) => void): Promise<string> {
    let inFlight = 0;
    mostInFlight = 0;
    server = createServer((request: IncomingMessage, response) => {
      mostInFlight = Math.max(mostInFlight, ++inFlight);
      response.on('close', () => (inFlight -= 1));
      let body = '';
      request.on('data', (part: Buffer) => (body += part.toString()));
      request.on('end', () => {
        const { inputs } = JSON.parse(body) as { inputs: [string] };
        setImmediate(() => {
          reply(inputs[0], response);
        });
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  async function load(url: string, texts: readonly string[], callers: number, timeoutMs = 10_000): Promise<Counts> {
    const client = createHttpClient(url, { maxConnections: callers, timeoutMs });
    const send = createSend(client, teiTarget, '/embed', { model: null, encoding: 'json' });
    const tally = createTally();
    await runCallers(callers, requestsOf(texts, 1, texts.length), async (request) => {
      const { outcome, elapsedMs } = await send(request);
      tally.add(request.texts.length, outcome, elapsedMs);
    });
    client.close();
    return tally.counts();
  }

  it('makes every call once, never more than its callers at a time', async () => {
    const seen: string[] = [];
    const url = await listen((text, response) => {
      seen.push(text);
      response.end('[[1]]');
    });
    const counts = await load(url, numbered(50), 4);
    expect(seen.toSorted()).toEqual(numbered(50).toSorted());
    expect(mostInFlight).toBeLessThanOrEqual(4);
    expect(counts).toMatchObject({ texts: 50, tokens: null, failures: {}, dropped: 0, refusalsMs: [] });
    expect(counts.latenciesMs).toHaveLength(50);
  });

  it('counts answers, refusals and failures of each kind apart, with one message of each', async () => {
    const url = await listen((text, response) => {
      const number = Number(text.slice(5));
      if (number % 5 === 1) response.writeHead(429).end('{}');
      else if (number % 5 === 2) response.writeHead(500).end(`broken ${number}`);
      else if (number % 5 === 3) response.end('[]');
      else if (number % 5 === 4) response.destroy();
      else response.end('[[1]]');
    });
    const counts = await load(url, numbered(20), 1);
    expect(counts.texts).toBe(4);
    expect(counts.latenciesMs).toHaveLength(4);
    expect(counts.refusalsMs).toHaveLength(4);
    expect(failureTotal(counts.failures)).toBe(12);
    expect(counts.failures).toEqual({
      'HTTP 500': { count: 4, example: 'broken 2' },
      'wrong number of vectors': { count: 4, example: '0 vectors for 1 texts' },
      ECONNRESET: { count: 4, example: 'socket hang up' },
    });
  });

  it('an answer that does not come in time, or not to its end, is a failure', async () => {
    const url = await listen((text, response) => {
      if (text === 'text 0') response.write('[[1');
      else response.writeHead(200, { 'content-length': 100 }).write('[[1]]', () => response.destroy());
    });
    const { failures, texts } = await load(url, numbered(2), 1, 200);
    expect(texts).toBe(0);
    expect(failureTotal(failures)).toBe(2);
  });
});

describe('an open loop', () => {
  /** Calls that are answered `answerMs` after they were made, over arrivals at the given times. */
  function start(arrivalsMs: number[], answerMs: number, maxInFlight: number) {
    const clock = createFakeClock();
    const tally = createTally();
    const sentMs: number[] = [];
    const controller = new AbortController();
    const done = runOpenLoop({
      next: requestsOf(['text'], 1, arrivalsMs.length),
      arrivals: [...arrivalsMs, Infinity].values(),
      maxInFlight,
      send: () => {
        sentMs.push(clock.nowMs());
        return new Promise((resolve) => {
          clock.after(answerMs, () => resolve({ outcome: { kind: 'answered', tokens: 3 }, elapsedMs: answerMs }));
        });
      },
      tally,
      clock,
      signal: controller.signal,
    });
    return { clock, tally, sentMs, done, controller };
  }

  it('makes its calls when they are due, whether or not earlier ones are answered', async () => {
    const { clock, sentMs, done, tally, controller } = start([10, 20, 25, 300], 1000, 10);
    await clock.advance(2000);
    controller.abort();
    await done;
    expect(sentMs).toEqual([10, 20, 25, 300]);
    expect(tally.counts()).toMatchObject({ texts: 4, tokens: 12, dropped: 0, latenciesMs: [1000, 1000, 1000, 1000] });
  });

  it('drops and counts what would exceed the calls in flight', async () => {
    const { clock, sentMs, done, tally, controller } = start([10, 20, 30, 40, 1011], 1000, 2);
    await clock.advance(3000);
    controller.abort();
    await done;
    expect(sentMs).toEqual([10, 20, 1011]);
    expect(tally.counts()).toMatchObject({ texts: 3, dropped: 2 });
  });

  it('counts a latency from when the call was due, not from when a late client made it', async () => {
    const clock = createFakeClock();
    const tally = createTally();
    // The client itself was away until 500: calls that were due before are late, one that is due then is not.
    let isFirst = true;
    await Promise.all([
      runOpenLoop({
        next: requestsOf(['text'], 1, 3),
        arrivals: [0, 100, 499].values(),
        maxInFlight: 10,
        send: async () => {
          if (isFirst) void clock.advance(500);
          isFirst = false;
          return { outcome: { kind: 'answered', tokens: null }, elapsedMs: 7 };
        },
        tally,
        clock: { ...clock, nowMs: () => (isFirst ? 0 : 500) },
        signal: new AbortController().signal,
      }),
    ]);
    expect(tally.counts().latenciesMs).toEqual([7, 407, 7]);
  });

  it('ends at once where it is told to while it waits, and its calls in flight are still counted', async () => {
    const { clock, done, tally, controller } = start([10, 1_000_000], 50, 2);
    await clock.advance(20);
    controller.abort();
    await clock.advance(100);
    await done;
    expect(tally.counts().texts).toBe(1);
    expect(clock.pendingTimers()).toBe(0);
  });
});
