/** Owns the command that attacks a real server for a while: `npm run fuzz [-- --seconds 60 --seed N]`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { createHttpClient } from '../src/bench/http-client.ts';
import { createRandom } from '../src/bench/statistics.ts';
import { startServed } from '../test/support/served.ts';
import { keepCase, readCases, type FuzzCase } from './fuzz/case.ts';
import { generateHttp, generateStdio } from './fuzz/generate.ts';
import { attackHttp } from './fuzz/http-target.ts';
import type { Random } from './fuzz/random.ts';
import { openStdioTarget } from './fuzz/stdio-target.ts';

/** How often the vectors of a known text are compared. @unit cases */
const valueEvery = 50;
/** Findings after which a transport is given up: more of the same tell nothing. */
const maxFindings = 20;
const maxSeconds = 3600;

const entry = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const { values: flags } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } },
});
const seconds = Math.min(maxSeconds, Number(flags.seconds));
const seed = Number(flags.seed ?? Date.now() % 1_000_000_000);
if (!(seconds > 0) || !Number.isInteger(seed)) throw new Error('--seconds and --seed must be numbers');

const say = (text: string): void => void process.stdout.write(`${text}\n`);
let findings = 0;

/** Attacks until the time is over and keeps what breaks a rule; gives the number of cases. */
async function campaign(options: {
  readonly generate: (random: Random) => FuzzCase;
  readonly seed: number;
  readonly attack: (attack: FuzzCase) => Promise<string[]>;
  readonly isAlive: () => boolean;
}): Promise<number> {
  const random = createRandom(options.seed);
  const endMs = performance.now() + seconds * 1000;
  const kept = [...readCases().values()];
  let cases = 0;
  let found = 0;
  while (performance.now() < endMs && found < maxFindings && options.isAlive()) {
    const generated = options.generate(random);
    // What once broke a rule comes first.
    const attack = kept.filter(({ transport }) => transport === generated.transport)[cases] ?? generated;
    cases += 1;
    const problems = await options.attack(attack);
    if (!options.isAlive()) problems.push('the server ended');
    if (problems.length === 0) continue;
    found += 1;
    const rule = `found: ${[...new Set(problems)].join('; ')}`;
    say(`${rule}\n  kept as ${keepCase({ ...attack, rule })}`);
  }
  findings += found;
  return cases;
}

async function fuzzHttp(): Promise<number> {
  const server = await startServed({
    flags: ['--headers-timeout-ms', '2000', '--body-timeout-ms', '2000', '--allowed-hosts', 'fuzz.example'],
  });
  const client = createHttpClient(server.baseUrl, { maxConnections: 1, timeoutMs: 30_000 });
  const port = Number(new URL(server.baseUrl).port);
  const known = await server.call('embed', { inputs: ['a known text'] });
  let isAlive = true;
  let cases = 0;
  try {
    return await campaign({
      generate: generateHttp,
      seed,
      async attack(attack) {
        const problems = await attackHttp(port, attack);
        cases += 1;
        try {
          const { body } = await client.post('/rcp/ping', '{"jsonrpc":"2.0","id":"after","method":"ping"}');
          if (body.toString() !== '{"jsonrpc":"2.0","id":"after","result":{}}') problems.push('the next ping failed');
          if (cases % valueEvery === 0) {
            const again = await server.call('embed', { inputs: ['a known text'] });
            if (!isDeepStrictEqual(again['vectors'], known['vectors']))
              problems.push('a known text has another vector');
          }
        } catch (error) {
          isAlive = false;
          problems.push(`the next call failed: ${(error as Error).message}`);
        }
        return problems;
      },
      isAlive: () => isAlive,
    });
  } finally {
    client.close();
    const code = await server.end();
    if (code !== 0) {
      findings += 1;
      say(`the HTTP server ended with ${String(code)}:\n${server.stderr()}`);
    }
  }
}

async function fuzzStdio(cacheDir: string): Promise<number> {
  const variables = { PATH: process.env['PATH'], TRIVEC_CACHE_DIR: cacheDir };
  const target = await openStdioTarget({ entry, variables });
  try {
    return await campaign({ generate: generateStdio, seed: seed + 1, ...target });
  } finally {
    const code = await target.end();
    if (code !== 0) {
      findings += 1;
      say(`the stdio server ended with ${String(code)}`);
    }
  }
}

const cacheDir = mkdtempSync(join(tmpdir(), 'trivec-fuzz-'));
try {
  say(`seed ${seed}, ${seconds} s`);
  const [http, stdio] = await Promise.all([fuzzHttp(), fuzzStdio(cacheDir)]);
  say(`${http} cases over HTTP, ${stdio} over stdio, ${findings} findings`);
  if (findings > 0) process.exitCode = 1;
} finally {
  rmSync(cacheDir, { recursive: true, force: true });
}
