/** Owns `npm run bench -- --bulk`: `trivec embed` of the whole corpus beside the bare loop, each in fresh processes. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { usableCores } from '../../src/device/cpu.ts';
import { startBareLoop } from './bare.ts';
import { benchCacheDir, type Workload } from './workload.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

/** Texts that warm up the bare loop before it counts; the command has proved its executors by then. */
const warmUpTexts = 40;

/** What a round gave: tokens/s while the devices were there, and of the command from its start to its end. */
export interface BulkRound {
  readonly bare: number;
  readonly command: number;
  readonly wholeCommand: number;
}

/** One round; who goes first is the caller's to change. */
export async function runBulkRound(work: Workload, isBareFirst: boolean): Promise<BulkRound> {
  const early = isBareFirst ? await bareTokensPerSecond(work) : null;
  const command = await commandTokensPerSecond(work);
  return { bare: early ?? (await bareTokensPerSecond(work)), ...command };
}

async function bareTokensPerSecond(work: Workload): Promise<number> {
  const loop = await startBareLoop(work.graphPath, work.outputName, usableCores());
  try {
    await loop.runAll(work.ids.slice(0, warmUpTexts));
    const { elapsedMs } = await loop.runAll(work.ids);
    return (1000 * work.tokens) / elapsedMs;
  } finally {
    loop.end();
  }
}

async function commandTokensPerSecond(work: Workload): Promise<Omit<BulkRound, 'bare'>> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-bulk-'));
  try {
    const input = join(root, 'corpus/cranfield.docs.jsonl');
    const words = ['dist/main.js', 'embed', input, '--out', join(folder, 'vectors.npy')];
    const startMs = performance.now();
    const { stderr } = await run(process.execPath, words, {
      cwd: root,
      env: { ...process.env, TRIVEC_CACHE_DIR: benchCacheDir },
    });
    const wholeCommand = (1000 * work.tokens) / (performance.now() - startMs);
    const found = /([\d.]+) tokens\/s\n$/.exec(stderr)?.[1];
    if (found === undefined) throw new Error(`embed did not say how fast it was: ${stderr}`);
    return { command: Number(found), wholeCommand };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
