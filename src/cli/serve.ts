/** Owns the command `serve`: settings to a running service, signals to an orderly end. */
import { Console } from 'node:console';
import closeWithGrace from 'close-with-grace';
import { environment } from '../config/environment.ts';
import { printableSettings, readSettings } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';
import { openEngine } from '../engine.ts';
import { modelsDirOf } from '../model/bundled.ts';
import { configFileOf } from './command-settings.ts';
import { processEntries } from './entries.ts';
import { keepHeapSmall } from './garbage.ts';
import { ConfigurationError } from '../errors.ts';
import { localModelProblems } from '../model/registry.ts';
import { accessProblems } from '../server/access.ts';
import { createService, openHttp, openStdio, type Service, type ServiceParts } from '../server.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import type { Tracer } from '../telemetry/trace.ts';

/** Time beyond the drain bound after which the process ends whatever is left. @unit ms */
const exitMarginMs = 10_000;

/**
 * Serves until a signal, the end of stdin or `shutdown`.
 * @throws ConfigurationError
 */
export async function serve(
  flags: Readonly<Record<string, unknown>>,
  unknownArguments: readonly string[],
  version: string,
): Promise<void> {
  const { config, printConfig, prepareOnly, ...settingFlags } = flags;
  const configFile = configFileOf({ config });
  const read = readSettings({ flags: settingFlags, environment, configFile, unknownArguments });
  const { settings, warnings } = read;
  // --print-config tells what is set, and uses none of it.
  const problems = [...read.problems, ...(printConfig === true ? [] : await accessProblems(settings))];
  if (problems.length > 0) {
    const models = { ...settings, modelsDir: modelsDirOf(settings) };
    throw new ConfigurationError([...problems, ...(await localModelProblems(models))]);
  }
  if (printConfig === true) {
    process.stdout.write(`${JSON.stringify(printableSettings(settings), null, 2)}\n`);
    return;
  }
  if (settings.stdio) globalThis.console = new Console(process.stderr);
  const log = createLog(settings.logLevel);
  for (const warning of warnings) log.warn(warning);
  const engine = await openEngine(settings, processEntries, log);
  if (prepareOnly === true) return;
  const tracer = await openTracer(settings, log, version);
  const parts: ServiceParts = { settings, engine, log, server: { name: 'trivec', version }, tracer };
  await run(createService(parts), parts);
}

/** What records spans is loaded only where there is a collector to send them to. */
async function openTracer({ otlpEndpoint }: Settings, log: Log, version: string): Promise<Tracer | null> {
  if (otlpEndpoint === null) return null;
  const { createOtlpTracer } = await import('../telemetry/otlp.ts');
  return createOtlpTracer({ endpoint: otlpEndpoint, version, log });
}

async function run(service: Service, parts: ServiceParts): Promise<void> {
  const { settings, log } = parts;
  const transport = settings.stdio ? overStdio(service, parts) : await overHttp(service, parts);
  const closing = closeWithGrace({ delay: settings.drainMs + exitMarginMs, logger: false }, async ({ signal, err }) => {
    if (err !== undefined) log.error({ err }, 'ending because of an error nobody caught');
    log.info({ signal: signal ?? null }, 'draining');
    service.beginDrain();
    await transport.end();
    await service.devices.stop();
    await parts.tracer?.close();
  });
  const { failures } = await service.devices.start();
  if (service.isDraining()) return;
  if (service.devices.lostModels().length > 0) {
    closing.uninstall();
    await transport.end();
    await service.devices.stop();
    // What never ran is a fault of the configuration; executors of one device tell the same one.
    throw new ConfigurationError([...new Set(failures.map(({ deviceId, reason }) => `${deviceId}: ${reason}`))]);
  }
  for (const failure of failures) log.error(failure, 'an executor could not be started');
  keepHeapSmall();
  process.stderr.write(`trivec listening on ${transport.address}\n`);
  await transport.finished;
  closing.close();
}

interface Transport {
  readonly address: string;
  /** Resolves when the transport ends by itself. */
  readonly finished: Promise<void>;
  end(): Promise<void>;
}

async function overHttp(service: Service, parts: ServiceParts): Promise<Transport> {
  const listener = await openHttp(service, parts);
  return {
    address: parts.settings.socket === null ? `${listener.url}/rcp` : listener.url,
    finished: new Promise<void>(() => undefined),
    end: () => listener.close({ drainMs: parts.settings.drainMs }),
  };
}

function overStdio(service: Service, parts: ServiceParts): Transport {
  const session = openStdio(service, { input: process.stdin, output: process.stdout }, parts);
  return {
    address: 'stdio',
    finished: session.finished,
    end() {
      session.stop('ending');
      return session.finished;
    },
  };
}
