/** Owns what the tests of other people's clients have in common: a server with keys, texts, and Python with the clients. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decodeFloats } from '../golden/golden-values.ts';
import { readDocuments, readQueries } from './corpus.ts';
import { temporaryFolder } from './files.ts';
import { startServed, type Served } from './served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const scripts = join(root, 'test/clients/python');
/** The Python that has the clients, where there is one. */
export const clientsPython: string = process.env['CLIENTS_PYTHON'] ?? join(root, '.cache/clients/bin/python');
/** Removed after the tests of the file that imports this. */
const folder = temporaryFolder();
const modules = [
  ...['openai', 'cohere', 'langchain_openai', 'huggingface_hub', 'llama_index.embeddings.openai_like'],
  ...['llama_index.embeddings.text_embeddings_inference', 'chromadb', 'qdrant_client'],
];
const look = `import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ${JSON.stringify(modules)})))`;

/** Whether there is a Python with every client that the scripts import. */
export const arePythonClientsThere = existsSync(clientsPython) && spawnSync(clientsPython, ['-c', look]).status === 0;

/** The abstracts that every client is given: short enough for the default model. */
export const texts: readonly string[] = readDocuments()
  .map(({ text }) => text)
  .filter((text) => text.length > 40 && text.length < 500)
  .slice(0, 6);
/** The question that goes with them. */
export const query: string = readQueries()[0]?.text ?? '';
/** More tokens than the default models take. */
export const tooLong: string = 'boundary '.repeat(600);

/** The key that may do everything. */
export const key = 'key-of-a-test';
/** A key that nobody has been given. */
export const wrongKey = 'key-of-nobody';
/** Clients that are slowed down, each with a key of its own: one call a second. */
const slowed = ['openai', 'cohere', 'langchain', 'llamaindex', 'ai', 'python-openai', 'python-cohere'] as const;

/** The key of a client that may make one call a second. */
export const slowKeyOf = (client: (typeof slowed)[number]): string => `slow-${client}`;

/** A server that knows these keys. */
export async function serveWithKeys(): Promise<Served> {
  const file = join(folder, 'keys');
  const lines = slowed.map((client) => `${client}:${slowKeyOf(client)} requestsPerSecond=1 requestBurst=1`);
  writeFileSync(file, `${[`all:${key}`, ...lines].join('\n')}\n`, { mode: 0o600 });
  return startServed({ flags: ['--api-key-file', file, '--executors', '1'], apiKey: key });
}

/** What `embed` gives for these texts. */
export async function embedded(
  served: Served,
  inputs: readonly string[],
  kind: 'query' | 'document' = 'document',
): Promise<Float32Array[]> {
  const { vectors } = await served.call<{ vectors: string[] }>('embed', { inputs, kind, encoding: 'f32-base64' });
  return vectors.map(decodeFloats);
}

/** Vectors of a client as float32, which is what was sent: bits can be compared. */
export const asFloats = (vectors: readonly (readonly number[])[]): Float32Array[] =>
  vectors.map((vector) => Float32Array.from(vector));

/**
 * What one of the scripts prints, given the server, the keys, the texts and what is added to them.
 * @throws Error with what it wrote where it fails
 */
export async function runPythonClient(name: string, served: Served, added: object = {}): Promise<unknown> {
  const given = { url: served.baseUrl, key, wrongKey, texts, query, tooLong, ...added };
  const child = spawn(clientsPython, [join(scripts, `${name}.py`)], {
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, LANGSMITH_TRACING: 'false' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  child.stdin.end(JSON.stringify(given));
  const code = await closed;
  if (code !== 0) throw new Error(`exit code ${String(code)}:\n${stdout}\n${stderr}`);
  return JSON.parse(stdout);
}

/** What each form of a vector's integers is, by its formula. */
export const forms = {
  int8: (vector: Float32Array): number[] =>
    [...vector].map((x) => Math.min(127, Math.max(-128, Math.round(127 * x) + 0))),
  uint8: (vector: Float32Array): number[] => forms.int8(vector).map((value) => value + 128),
  ubinary: (vector: Float32Array): number[] =>
    Array.from({ length: vector.length / 8 }, (_, byte) =>
      Array.from(vector.subarray(8 * byte, 8 * byte + 8)).reduce((bits, x) => 2 * bits + (x > 0 ? 1 : 0), 0),
    ),
  binary: (vector: Float32Array): number[] => forms.ubinary(vector).map((value) => value - 128),
} as const;

/** The error of the first of a few calls that is refused; null where none is. */
export async function untilRefused(call: () => Promise<unknown>): Promise<unknown> {
  for (let calls = 0; calls < 3; calls++) {
    try {
      await call();
    } catch (error) {
      return error;
    }
  }
  return null;
}
