/** Owns the collector of OpenTelemetry as the tests run it: the modules of one release, built by Go, and their process. */
import { spawn, spawnSync } from 'node:child_process';
import { createServer, type AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { observabilityFolder } from './observability.ts';
import { requirement } from './require.ts';

const command = fileURLToPath(new URL('../../.cache/bin/otelcol', import.meta.url));

/** Whether a collector was built; `otelcol` in `TRIVEC_TEST_REQUIRE` demands it. */
export const otelcol = requirement('otelcol', spawnSync(command, ['--version']).status === 0, 'no .cache/bin/otelcol');

/** A collector that listens. */
export interface Otelcol {
  readonly url: string;
  /** What it has written, spans in full. */
  text(): string;
  end(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Starts the collector with the settings of this repository, on loopback and with spans written out in full.
 * @throws Error with what it has said where it ends instead
 */
export async function startOtelcol(): Promise<Otelcol> {
  const port = await freePort();
  const child = spawn(
    command,
    [
      `file:${observabilityFolder}/otel-collector.yml`,
      `yaml:receivers::otlp::protocols::http::endpoint: 127.0.0.1:${port}`,
      'yaml:exporters::debug::verbosity: detailed',
      'yaml:service::telemetry::metrics::level: none',
    ].map((source) => `--config=${source}`),
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let said = '';
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (said.includes('Everything is ready')) resolve();
      });
    }
    void ended.then(() => {
      reject(new Error(`the collector ended: ${said}`));
    });
  });
  return {
    url: `http://127.0.0.1:${port}`,
    text: () => said,
    async end() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
