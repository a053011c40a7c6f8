/** Owns the end of a server under load. */
import { createHttpClient } from '../../src/bench/http-client.ts';
import { processTree } from '../../src/bench/processes.ts';
import type { Served } from '../../test/support/served.ts';
import { frameOf } from './calls.ts';
import { none, type Check } from './checks.ts';
import { judgeAnswer } from './judge.ts';

const calls = 40;
const timeoutMs = 60_000;
const unavailable = -32010;

/** Whether SIGTERM under load ends the server with 0, every call answered and nothing left behind. */
export async function checkDrain(server: Served, texts: readonly string[]): Promise<Check[]> {
  const client = createHttpClient(server.baseUrl, { maxConnections: calls, timeoutMs });
  const pids = processTree(server.pid);
  const faults: string[] = [];
  let results = 0;
  const answered = Array.from({ length: calls }, async (_, at) => {
    const id = `drain-${at}`;
    const params = { inputs: texts.slice(at, at + 8) };
    try {
      const { body } = await client.post('/rcp/embed', frameOf(id, { method: 'embed', params }));
      const { problems, code } = judgeAnswer(body.toString(), id);
      faults.push(...problems);
      if (code === null) results += 1;
      else if (code !== unavailable) faults.push(`${id}: ${code}`);
    } catch (error) {
      faults.push(`${id}: ${(error as Error).message}`);
    }
  });
  await Promise.race(answered);
  const code = await server.end();
  await Promise.all(answered);
  client.close();
  const left = pids.filter((pid) => processTree(pid).length > 0);
  return [
    none(`SIGTERM with ${calls} calls under way: ${results} answered, lost or wrong`, faults),
    none('SIGTERM under load: exit code 0 and no process left', [
      ...(code === 0 ? [] : [`exit code ${String(code)}`]),
      ...left.map((pid) => `process ${pid}`),
    ]),
  ];
}
