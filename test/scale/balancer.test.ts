import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { settingsSchema } from '../../src/config/settings.ts';
import { keepAliveTimeoutMs } from '../../src/http/listen.ts';
import { isNginxThere, startBalancer, type Balancer } from '../support/nginx.ts';
import { requirement } from '../support/require.ts';
import { callWithRetries } from '../support/retrying-client.ts';
import { startServed, type Served } from '../support/served.ts';

const nginx = requirement('nginx', isNginxThere, 'no nginx command');

// One method and one executor each: four servers share a machine. The queue is short, so that refusals happen too.
const flags = ['--executors', '1', '--sparse-model', 'none', '--multi-model', 'none', '--max-queued-items', '3'];
const clients = 10;
/** Calls between two events. */
const callsPerPhase = 40;

const texts = Array.from(
  { length: 30 },
  (_, index) => `plate ${index}: ${'heat moves slowly '.repeat(1 + (index % 12))}`,
);
/** Lists of one to three texts, another one for each call. */
const inputsOf = (call: number) =>
  Array.from({ length: 1 + (call % 3) }, (_, index) => (call * 7 + index * 11) % texts.length);

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
});

async function startServers(count: number): Promise<Served[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => startServed({ flags })));
  ends.push(...servers.map((server) => () => server.end()));
  return servers;
}

const portOf = ({ baseUrl }: Served) => Number(new URL(baseUrl).port);

/** Results of `embed` that a server has given. */
async function embedCallsOf({ baseUrl }: Served): Promise<number> {
  const metrics = await (await fetch(`${baseUrl}/metrics`)).text();
  return [...metrics.matchAll(/^trivec_calls_total\{method="embed",outcome="ok"[^}]*\} (\d+)/gmu)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

async function startInFront(servers: readonly Served[]): Promise<Balancer> {
  const balancer = await startBalancer(servers.map(portOf));
  ends.push(() => balancer.end());
  return balancer;
}

describe('the example for nginx', () => {
  const example = readFileSync(new URL('../../examples/nginx/nginx.conf', import.meta.url), 'utf8');
  const settings = settingsSchema.parse({});
  /** The number of a directive. */
  const valueOf = (directive: string, unit: string) =>
    Number(new RegExp(`^ *${directive} (\\d+)${unit};$`, 'mu').exec(example)?.[1]);

  it('closes an idle connection before a server does, and says when that is', () => {
    expect(valueOf('keepalive_timeout', 's') * 1000).toBeLessThan(keepAliveTimeoutMs);
    expect(example).toContain(`less than the ${keepAliveTimeoutMs / 1000} s after which a server closes`);
  });

  it('takes the bodies that a server takes, and waits longer than a call may take', () => {
    expect(valueOf('client_max_body_size', 'm') * 2 ** 20).toBe(settings.bodyLimitBytes);
    expect(valueOf('proxy_read_timeout', 's') * 1000).toBeGreaterThan(settings.deadlineMs);
    expect(example).toContain(`--deadline-ms (${settings.deadlineMs / 1000} s)`);
    expect(valueOf('proxy_next_upstream_timeout', 's') * 1000).toBeLessThan(settings.deadlineMs);
  });
});

describe.skipIf(nginx.skip)(nginx.title('three servers behind nginx'), () => {
  it(
    'under load one is killed, one drained and one added: every call is answered once, with its own values',
    { timeout: 120_000 },
    async () => {
      const [killed, drained, kept, added] = (await startServers(4)) as [Served, Served, Served, Served];
      const { vectors: expected } = await kept.call<{ vectors: number[][] }>('embed', { inputs: texts.slice(0, 3) });
      for (let index = 3; index < texts.length; index += 3) {
        const more = await kept.call<{ vectors: number[][] }>('embed', { inputs: texts.slice(index, index + 3) });
        expected.push(...more.vectors);
      }
      const balancer = await startInFront([killed, drained, kept]);

      const answers: { call: number; vectors: unknown; retries: readonly string[] }[] = [];
      const failures: unknown[] = [];
      const progress = new EventEmitter().setMaxListeners(clients);
      let calls = 0;
      let isOver = false;
      const client = async () => {
        while (!isOver) {
          const call = calls++;
          const inputs = inputsOf(call).map((index) => texts[index]);
          try {
            const { result, retries } = await callWithRetries(balancer.baseUrl, 'embed', { inputs });
            answers.push({ call, vectors: result['vectors'], retries });
          } catch (error) {
            failures.push(error);
          }
          progress.emit('call');
        }
      };
      const load = Promise.all(Array.from({ length: clients }, client));
      const phase = async () => {
        const end = answers.length + failures.length + callsPerPhase;
        while (answers.length + failures.length < end) await once(progress, 'call');
      };

      await phase();
      process.kill(killed.pid, 'SIGKILL');
      await phase();
      const exitCode = drained.end();
      await phase();
      expect(await exitCode).toBe(0);
      balancer.reload([killed, drained, kept, added].map(portOf));
      while ((await embedCallsOf(added)) === 0) await once(progress, 'call');
      await phase();
      isOver = true;
      await load;

      expect(failures).toEqual([]);
      expect(answers.map(({ call }) => call).toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: calls }, (_, i) => i),
      );
      for (const { call, vectors } of answers) {
        expect(vectors, `call ${call}`).toEqual(inputsOf(call).map((index) => expected[index]));
      }
      const reasons = new Set(answers.flatMap(({ retries }) => retries));
      for (const reason of reasons) expect(['-32010', '-32011', 'HTTP 503', 'connection']).toContain(reason);
      expect(await embedCallsOf(kept)).toBeGreaterThan(10);
    },
  );

  it(
    'a server that leaves is never ready again, and nginx sends calls elsewhere without a failed one',
    { timeout: 90_000 },
    async () => {
      const [leaving, kept] = (await startServers(2)) as [Served, Served];
      const balancer = await startInFront([leaving, kept]);
      const look = () =>
        fetch(`${leaving.baseUrl}/health/ready`).then(
          (answer) => answer.status,
          () => 0,
        );
      const statuses = [await look()];
      const looks = (async () => {
        while (statuses.at(-1) !== 0) statuses.push(await look());
      })();
      expect(await leaving.end()).toBe(0);
      await looks;
      // The port closes 100 ms after the signal: a busy machine may not get to see the 503.
      expect(statuses.join(' ')).toMatch(/^(200 )+(503 )*0$/u);

      const before = await embedCallsOf(kept);
      for (let call = 0; call < 6; call++) {
        const { retries } = await callWithRetries(balancer.baseUrl, 'embed', { inputs: ['heat'] });
        expect(retries).toEqual([]);
      }
      expect((await embedCallsOf(kept)) - before).toBe(6);
    },
  );

  it(
    'without any server the answer is one that clients repeat: HTTP 503 with -32010',
    { timeout: 90_000 },
    async () => {
      const [gone] = (await startServers(1)) as [Served];
      const balancer = await startInFront([gone]);
      await gone.end();
      const answer = await fetch(`${balancer.baseUrl}/rcp/ping`, {
        method: 'POST',
        body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
      });
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('1');
      expect(await answer.json()).toMatchObject({ error: { code: -32010, data: { retryable: true } } });
    },
  );
});
