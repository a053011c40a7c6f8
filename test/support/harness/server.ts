/** Owns a server in this process: the fixture engine behind the real service, and everything that it logs. */
import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { Settings } from '../../../src/config/settings.ts';
import type { Listener } from '../../../src/http/listen.ts';
import { createService, openHttp, type Service, type ServiceParts } from '../../../src/server.ts';
import { createFixtureEngine, type FixtureEngine } from '../fixture/engine.ts';
import { fixtureSettings } from '../fixture/settings.ts';

/** A running fixture server without a transport. */
export interface TestServer {
  readonly service: Service;
  readonly parts: ServiceParts;
  readonly engine: FixtureEngine;
  /** Everything logged so far, as it would stand on stderr. */
  logText(): string;
  /** The one HTTP listener of this server, opened when it is first asked for. */
  listener(): Promise<Listener>;
  /** Resolves when so many texts run and wait; they keep doing so where the running one is `hold`. */
  untilBusy(runningItems: number, queuedItems: number): Promise<void>;
  close(): Promise<void>;
}

/** A fixture server whose executor has proved itself. */
export async function startServer(overrides: Partial<Settings> = {}): Promise<TestServer> {
  const engine = await createFixtureEngine();
  let logText = '';
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logText += chunk.toString('utf8');
      done();
    },
  });
  const settings = fixtureSettings(overrides);
  const log = pino({ level: 'debug' }, stream);
  // The shortest pause before an executor is started again.
  const parts: ServiceParts = { settings, engine, log, server: { name: 'fixture', version: '1' }, random: () => 0 };
  const service = createService(parts);
  let listener: Promise<Listener> | null = null;
  await service.devices.start();
  return {
    service,
    parts,
    engine,
    logText: () => logText,
    listener: () => (listener ??= openHttp(service, parts)),
    async untilBusy(runningItems, queuedItems) {
      const { gauges } = service.scheduler;
      while (gauges.runningItems !== runningItems || gauges.queuedItems !== queuedItems) {
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    },
    async close() {
      await (await listener)?.close({ drainMs: 0 });
      await service.devices.stop();
    },
  };
}
