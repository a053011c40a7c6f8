/** Owns a session over stdio under load: many calls at once, some of them cancelled, each answered once. */
import { createRandom } from '../../src/bench/statistics.ts';
import { processTree } from '../../src/bench/processes.ts';
import { oneIn } from '../fuzz/random.ts';
import { openStdioTarget } from '../fuzz/stdio-target.ts';
import { createCallMaker, frameOf } from './calls.ts';
import { none, type Check } from './checks.ts';

const callsAtOnce = 40;

/** The checks of a session that lasts until `isOver`. */
export async function checkSession(options: {
  readonly entry: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly seed: number;
  readonly isOver: () => boolean;
}): Promise<Check[]> {
  const random = createRandom(options.seed);
  const calls = createCallMaker(random);
  const target = await openStdioTarget(options);
  const faults: string[] = [];
  let sent = 0;
  while (!options.isOver() && target.isAlive()) {
    const lines = Array.from({ length: callsAtOnce }, () => {
      const id = `call-${++sent}`;
      const frame = frameOf(id, oneIn(random, 6) ? calls.bad() : calls.good());
      if (!oneIn(random, 6)) return frame;
      return `${frame}\n${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancel', params: { id } })}`;
    });
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    faults.push(...(await target.attack({ transport: 'stdio', bytes, bodies: null })));
  }
  const pids = processTree(target.pid);
  const code = await target.end();
  const left = pids.filter((pid) => processTree(pid).length > 0);
  return [
    none(`stdio: faults in the answers to ${sent} calls, each answered once`, faults),
    none('stdio: at the end of input exit code 0 and no process left', [
      ...(code === 0 ? [] : [`exit code ${String(code)}`]),
      ...left.map((pid) => `process ${pid}`),
    ]),
  ];
}
