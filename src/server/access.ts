/** Owns who reaches a server and how: its address, its certificate, its keys, as the settings name them. */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import { ConfigurationError } from '../errors.ts';
import type { Endpoint } from '../http/bind.ts';
import { openKeys, readKeyFile, type Keys } from '../http/keys.ts';
import { openTls, readCredentials, type TlsSource } from '../http/tls.ts';
import { quotaReasons } from '../rpc/quota.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** What the metrics call a key without a name. */
const unnamedKey = 'unnamed';

/**
 * What is wrong with the files of keys and certificates that the settings name; a start looks before the models are
 * loaded.
 */
export async function accessProblems({ apiKeyFile, tlsCert, tlsKey }: Settings): Promise<string[]> {
  const reads = [
    ...(apiKeyFile === null ? [] : [readKeyFile(apiKeyFile)]),
    ...(tlsCert === null || tlsKey === null
      ? []
      : [readCredentials({ certFile: tlsCert, keyFile: tlsKey }, Date.now())]),
  ];
  const outcomes = await Promise.allSettled(reads);
  return outcomes.flatMap((outcome) => {
    if (outcome.status === 'fulfilled') return [];
    if (outcome.reason instanceof ConfigurationError) return outcome.reason.problems;
    throw outcome.reason;
  });
}

/** Where to listen. */
export function endpointOf({ socket, socketMode, host, port }: Settings): Endpoint {
  if (socket === null) return { kind: 'tcp', host, port };
  return { kind: 'unix', path: socket, mode: Number.parseInt(socketMode, 8) };
}

/**
 * The certificate to serve with; null: none, and plain HTTP.
 * @throws ConfigurationError where a file cannot be used
 */
export async function openTlsOf({ tlsCert, tlsKey }: Settings, log: Log, clock: Clock): Promise<TlsSource | null> {
  if (tlsCert === null || tlsKey === null) return null;
  return openTls({ certFile: tlsCert, keyFile: tlsKey }, { clock, log, wallClockMs: () => Date.now() });
}

/**
 * The keys in force, their refusals counted.
 * @throws ConfigurationError where their file cannot be used
 */
export function openKeysOf(settings: Settings, metrics: Metrics, log: Log, clock: Clock): Promise<Keys> {
  const { keyRequestsPerSecond, keyRequestBurst, keyQueuedTokens } = settings;
  return openKeys(
    { apiKeys: settings.apiKey, file: settings.apiKeyFile },
    {
      clock,
      log,
      limits: {
        requestsPerSecond: keyRequestsPerSecond,
        requestBurst: keyRequestBurst,
        queuedTokens: keyQueuedTokens,
      },
      onRefused: (name, reason) => {
        metrics.keyRefusals.inc({ key: name ?? unnamedKey, reason });
      },
      onForgotten: (key) => {
        for (const reason of quotaReasons) metrics.keyRefusals.remove({ key, reason });
      },
    },
  );
}
