import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDocuments } from '../support/corpus.ts';
import { requirement } from '../support/require.ts';
import { startServed, type Served } from '../support/served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const main = `${root}dist/main.js`;
const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], TRIVEC_CACHE_DIR: `${root}.cache/served` };
const run = promisify(execFile);

let folder: string;
let served: Served;
const path = (name: string): string => join(folder, name);
/** The first words of every document: short, so that what is tested is not the model. */
const texts = readDocuments().map(({ text }) => text.split(' ').slice(0, 10).join(' '));

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'embed-'));
  const lines = texts.map((text, row) => `${JSON.stringify({ key: `doc ${row}`, text })}\n`);
  writeFileSync(path('in.jsonl'), lines.join(''));
  writeFileSync(path('few.jsonl'), lines.slice(0, 40).join(''));
  served = await startServed({ flags: ['--device', 'cpu'] });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await served.end();
});

const wordsOf = (out: string, flags: readonly string[]): string[] => [
  main,
  'embed',
  path('in.jsonl'),
  '--out',
  path(out),
  ...flags,
];
const trivec = (words: readonly string[]) => run(process.execPath, words, { env, cwd: folder, timeout: 120_000 });

/** Runs the command and kills it with everything it started as soon as it has recorded so many chunks. */
async function killAfter(chunks: number, out: string, flags: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, wordsOf(out, flags), { env, stdio: 'ignore', detached: true });
  const closed = once(child, 'close');
  const journal = `${path(out)}.journal`;
  const recorded = (): number => (existsSync(journal) ? readFileSync(journal, 'utf8').split('\n').length - 2 : 0);
  while (recorded() < chunks && child.exitCode === null) await pause(2);
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  await closed;
}

const ids = ['--device', 'cpu', '--id-field', 'key'];
const formats: readonly (readonly [end: string, flags: readonly string[]])[] = [
  ['jsonl', ids],
  ['parquet', ids],
  ['arrow', ids],
  ['npy', ['--device', 'cpu']],
];

describe('trivec embed', () => {
  it.each(formats)(
    'killed twice in the middle makes the same .%s file as undisturbed',
    { timeout: 240_000 },
    async (end, flags) => {
      await trivec(wordsOf(`whole.${end}`, flags));
      await killAfter(1, `killed.${end}`, flags);
      expect(existsSync(path(`killed.${end}`))).toBe(false);
      await killAfter(3, `killed.${end}`, flags);
      const { stderr } = await trivec(wordsOf(`killed.${end}`, flags));
      expect(stderr).toMatch(/going on after \d+ rows that are done/u);
      expect(readFileSync(path(`killed.${end}`)).equals(readFileSync(path(`whole.${end}`)))).toBe(true);
      expect(statSync(path(`whole.${end}`)).size).toBeGreaterThan(texts.length * 384 * 4);
      const again = await trivec(wordsOf(`killed.${end}`, flags));
      expect(again.stderr).toContain('is whole already: 1400 rows');
    },
  );

  it('gives the vectors of `embed` bit for bit, here and from a server', { timeout: 120_000 }, async () => {
    const inputs = texts.slice(0, 40);
    const { vectors } = await served.call<{ vectors: number[][] }>('embed', { inputs, kind: 'document' });
    const few = [main, 'embed', path('few.jsonl'), '--out', '-', '--quiet'];
    for (const flags of [
      ['--device', 'cpu'],
      ['--url', served.baseUrl],
    ]) {
      const { stdout } = await trivec([...few, ...flags]);
      const rows = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { index: number; embedding: number[] });
      expect(rows.map(({ index }) => index)).toEqual(inputs.map((_, row) => row));
      expect(rows.map(({ embedding }) => embedding)).toEqual(vectors);
    }
  });

  it('goes on after Ctrl-C where it stopped', { timeout: 120_000 }, async () => {
    const child = spawn(process.execPath, wordsOf('stopped.jsonl', ids), { env, stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const closed = once(child, 'close');
    const journal = `${path('stopped.jsonl')}.journal`;
    while (!existsSync(journal) || readFileSync(journal, 'utf8').split('\n').length < 3) await pause(2);
    child.kill('SIGINT');
    expect((await closed)[0]).toBe(130);
    expect(stderr).toContain('the same command goes on where it stopped');
    await trivec(wordsOf('stopped.jsonl', ids));
    expect(readFileSync(path('stopped.jsonl')).equals(readFileSync(path('whole.jsonl')))).toBe(true);
  });

  it('tells every problem of its flags before anything runs', async () => {
    const flags = ['--method', 'sparse', '--dimensions', '0', '--url', 'ftp://x', '--out', path('a.npy')];
    await expect(trivec([main, 'embed', path('in.jsonl'), ...flags])).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--dimensions[^]*--url/u) as string,
    });
  });

  const python = process.env['RAY_PYTHON'] ?? join(root, '.cache/ray/bin/python');
  const look = 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ["numpy", "pyarrow"])))';
  const hasArrow = existsSync(python) && spawnSync(python, ['-c', look]).status === 0;
  const needsPython = requirement('ray', hasArrow, 'no Python with pyarrow and NumPy');
  it.skipIf(needsPython.skip)(needsPython.title('makes files that pyarrow and NumPy read to the same values'), () => {
    const script = `
import json, sys, numpy as np, pyarrow.parquet as pq, pyarrow.ipc as ipc
rows = [json.loads(line) for line in open('whole.jsonl')]
wanted = np.array([row['embedding'] for row in rows], dtype=np.float32)
for table in pq.read_table('whole.parquet'), ipc.open_file('whole.arrow').read_all():
    assert table['id'].to_pylist() == [row['id'] for row in rows]
    assert np.array_equal(np.array(table['embedding'].to_pylist(), dtype=np.float32), wanted)
assert np.array_equal(np.load('whole.npy'), wanted)
print(len(rows))`;
    const { stdout, stderr } = spawnSync(python, ['-c', script], { cwd: folder, encoding: 'utf8' });
    expect(`${stdout}${stderr}`.trim()).toBe('1400');
  });
});

describe('trivec rerank, ping and info', () => {
  it('put passages in order, best first', { timeout: 60_000 }, async () => {
    writeFileSync(path('passages.txt'), 'the bread is in the oven\na wing in a propeller slipstream\n');
    const words = [main, 'rerank', path('passages.txt'), '--query', 'aerodynamics of a wing', '--json'];
    for (const flags of [
      ['--device', 'cpu'],
      ['--url', served.baseUrl],
    ]) {
      const { stdout } = await trivec([...words, ...flags]);
      expect(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) => (JSON.parse(line) as { line: number }).line),
      ).toEqual([2, 1]);
    }
  });

  it('say what a server is, and end with 1 where none answers', { timeout: 60_000 }, async () => {
    expect((await trivec([main, 'ping', served.baseUrl])).stdout).toMatch(
      /^trivec \S+ at \S+ answers in [\d.]+ ms\n$/u,
    );
    const { stdout } = await trivec([main, 'info', served.baseUrl]);
    expect(stdout).toMatch(/^dense +all-MiniLM-L6-v2\S+ +384 +2048$/mu);
    expect(JSON.parse((await trivec([main, 'info', served.baseUrl, '--json'])).stdout)).toHaveProperty(
      'capabilities.embed',
    );
    await expect(trivec([main, 'ping', 'http://127.0.0.1:9'])).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('no RCP server answers at http://127.0.0.1:9') as string,
    });
  });
});
