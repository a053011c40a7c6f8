import { createServer, type Server } from 'node:http';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isRayThere, openRayPlace, type InputRow, type RayPlace } from '../support/ray.ts';
import { blocksOf, examplesOf } from '../support/pages.ts';
import { requirement } from '../support/require.ts';
import { startServed, type Served } from '../support/served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ray = requirement('ray', isRayThere, 'no Python with ray and pyarrow in .cache/ray or RAY_PYTHON');
const embedOnly = ['--executors', '1', '--sparse-model', 'none', '--multi-model', 'none'];

let place: RayPlace;
const ends: (() => Promise<unknown>)[] = [];
beforeEach(() => {
  place = openRayPlace({ TRIVEC_CACHE_DIR: `${root}.cache/served` });
});
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
  await place.remove();
});

async function serve(flags: readonly string[] = []): Promise<Served> {
  const served = await startServed({ flags: [...embedOnly, ...flags] });
  ends.push(() => served.end());
  return served;
}

/** Row groups with ids that go on through all files; among the texts one is missing and one empty. */
function inputOf(files: readonly string[], groups: number, rows: number): Record<string, InputRow[][]> {
  let id = 0;
  const row = (): InputRow => {
    const text = id === 3 ? null : id === 4 ? '' : `Plate ${id}: ${'heat moves through a wall '.repeat(id % 24)}`;
    return { id: id++, text };
  };
  const list = <T>(length: number, make: () => T) => Array.from({ length }, make);
  return Object.fromEntries(files.map((file) => [file, list(groups, () => list(rows, row))]));
}

/** What `embed` gives for each row, by id, as the output spells it. */
async function vectorsOf(served: Served, rows: readonly InputRow[]): Promise<Map<number, string | null>> {
  const vectors = new Map<number, string | null>();
  for (const { id, text } of rows) {
    const params = { inputs: [text], kind: 'document', encoding: 'f32-base64' };
    const result = text === null ? null : await served.call<{ vectors: string[] }>('embed', params);
    vectors.set(id, result?.vectors[0] ?? null);
  }
  return vectors;
}

async function expectEveryRowOnce(served: Served, input: Record<string, InputRow[][]>): Promise<void> {
  const rows = Object.values(input).flat(2);
  const found = Object.values(place.readOutput()).flat();
  expect(found.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(rows.map(({ id }) => id));
  const expected = await vectorsOf(served, rows);
  for (const { id, embedding } of found) expect(embedding, `row ${id}`).toBe(expected.get(id));
}

const outputs = () =>
  existsSync(place.target) ? readdirSync(place.target).filter((name) => name.endsWith('.parquet')) : [];

describe.skipIf(ray.skip)(ray.title('embedding a Parquet data set with Ray'), () => {
  it(
    'killed and started again it gives every row exactly once, as `embed` does, and mixes nothing else into it',
    { timeout: 240_000 },
    async () => {
      // The queues are short: workers are told to wait, and one of three addresses is dead.
      const servers = await Promise.all([serve(['--max-queued-items', '2']), serve(['--max-queued-items', '2'])]);
      const input = inputOf(['a.parquet', 'b.parquet', 'more/a.parquet'], 6, 16);
      place.writeInput(input);
      const addresses = [...servers.map(({ baseUrl }) => baseUrl), 'http://127.0.0.1:9'];
      const flags = ['--workers', '2', '--batch', '4', ...addresses.flatMap((url) => ['--server', url])];

      const killed = place.start(flags);
      while (outputs().length < 3) await Promise.race([sleep(20), killed.printed]);
      await killed.kill();
      const before = outputs();
      expect(before.length).toBeLessThan(18);
      const times = before.map((name) => statSync(join(place.target, name)).mtimeMs);

      const printed = await place.start(flags).printed;
      expect(printed).toContain(`18 blocks, ${before.length} done before\n`);
      expect(printed).toContain(`${(18 - before.length) * 16} rows in ${18 - before.length} blocks\n`);
      expect(before.map((name) => statSync(join(place.target, name)).mtimeMs)).toEqual(times);
      expect(readdirSync(place.target).filter((name) => !name.endsWith('.parquet'))).toEqual(['manifest.json']);
      await expectEveryRowOnce(servers[0], input);

      // Vectors of queries do not belong beside those of documents.
      await expect(place.start([...flags, '--kind', 'query']).printed).rejects.toThrow(/holds something else/u);
    },
  );

  it(
    'with an embedded engine in each of two workers the vectors are the same, and no engine is left behind',
    { timeout: 180_000 },
    async () => {
      const input = inputOf(['a.parquet'], 3, 8);
      place.writeInput(input);
      const engine = [process.execPath, `${root}dist/main.js`, 'serve', '--stdio', '--log-level', 'warn', ...embedOnly];
      const printed = await place.start(['--workers', '2', '--engine', engine.join(' ')]).printed;
      expect(printed).toContain('24 rows in 3 blocks\n');
      // Engines end with their input, which Ray's workers take with them.
      while (place.processes().length > 0) await sleep(20);
      await expectEveryRowOnce(await serve(), input);
    },
  );
});

describe.skipIf(ray.skip)(ray.title('the page on a corpus'), () => {
  it('shows commands that embed the corpus of this repository as they stand', { timeout: 240_000 }, async () => {
    const block = blocksOf(readFileSync(join(root, 'docs/scaling.md'), 'utf8')).find(({ text }) =>
      text.includes('ray/'),
    );
    const [install, ...commands] = examplesOf(block ?? { text: '' }).map(({ command }) => command);
    expect(install).toContain('pip install -r examples/ray/requirements.txt');
    const { baseUrl } = await serve();
    const printed = await place.runPage(
      commands.map((command) => command.replaceAll(/http:\/\/10\.[\d.:]+/gu, baseUrl)),
    );
    expect(printed).toContain('1400 rows in 7 blocks\n');
  });

  it('a folder without Parquet is refused, and nothing is begun', { timeout: 60_000 }, async () => {
    const run = place.startOn(join(root, 'corpus'), ['--server', 'http://127.0.0.1:9']);
    await expect(run.printed).rejects.toThrow(/exit code 1:[\s\S]*no row group of a Parquet file/u);
    expect(existsSync(place.target)).toBe(false);
  });
});

describe.skipIf(ray.skip)(ray.title('the client of the Ray example'), () => {
  const overloaded = { code: -32011, message: 'full', data: { retryable: true, retryAfterMs: 400 } };
  const unavailable = { code: -32010, message: 'leaving', data: { retryable: true } };
  const invalid = { code: -32602, message: 'wrong', data: { retryable: false } };

  /** A server that answers with these errors in turn, then with a result that names it. */
  async function answering(name: string, errors: readonly object[]): Promise<string> {
    const left = [...errors];
    const server: Server = createServer((request, response) => {
      request.resume().on('end', () => {
        const error = left.shift();
        response.end(
          JSON.stringify({ jsonrpc: '2.0', id: 1, ...(error === undefined ? { result: { name } } : { error }) }),
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ends.push(async () => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  /** Who answered a call to several servers, and how long the client slept before. */
  async function ask(urls: readonly string[]): Promise<{ name: string; sleeps: number[] }> {
    const script = [
      'import json',
      'from trivec_client import CallError, Client, HttpTransport',
      'sleeps = []',
      `client = Client([HttpTransport(url) for url in ${JSON.stringify(urls)}], sleep=sleeps.append)`,
      'try: name = client.call("embed", {})["name"]',
      'except CallError as error: name = str(error)',
      'print(json.dumps({"name": name, "sleeps": sleeps}))',
    ].join('\n');
    return JSON.parse(await place.runClient(script)) as { name: string; sleeps: number[] };
  }

  it('sleeps as long as a full server says, and a quarter more at most, then asks the next one', async () => {
    const { name, sleeps } = await ask([await answering('a', [overloaded]), await answering('b', [])]);
    expect(name).toBe('b');
    expect(sleeps).toHaveLength(1);
    expect(sleeps[0]).toBeGreaterThanOrEqual(0.4);
    expect(sleeps[0]).toBeLessThanOrEqual(0.5);
  });

  it('asks another server at once where one leaves or is dead, and sleeps when all have been asked', async () => {
    const leaving = await answering('a', [unavailable]);
    const other = await ask(['http://127.0.0.1:9', leaving, await answering('b', [])]);
    expect(other).toEqual({ name: 'b', sleeps: [] });
    const alone = await ask([await answering('a', [unavailable, unavailable])]);
    expect(alone.name).toBe('a');
    expect(alone.sleeps).toHaveLength(2);
  });

  it('does not repeat what no repetition can change', async () => {
    const { name, sleeps } = await ask([await answering('a', [invalid]), await answering('b', [])]);
    expect(name).toContain('-32602 wrong');
    expect(sleeps).toEqual([]);
  });
});
