/** Owns the flags of the commands that run a model once: those of `serve` that say how models run, and of clients. */
import { Option, type Command } from 'commander';
import { describeSettings } from '../config/describe.ts';
import { environment } from '../config/environment.ts';
import { readSettings } from '../config/load.ts';
import { flagOf } from '../config/names.ts';
import { settingsMeta, type Settings } from '../config/settings.ts';
import { ConfigurationError } from '../errors.ts';
import { configFileOf, type Flags } from './command-settings.ts';

/** Settings that mean something where nobody calls. */
const jobSettingNames: ReadonlySet<string> = new Set([
  'embedModel',
  'sparseModel',
  'multiModel',
  'rerankModel',
  'precision',
  'modelsDir',
  'cacheDir',
  'offline',
  'device',
  'embedDevice',
  'sparseDevice',
  'multiDevice',
  'rerankDevice',
  'executors',
  'gpuExecutors',
  'maxExecutorBytes',
  'maxBatchTokens',
  'maxBatchItems',
  'maxGpuBatchTokens',
  'maxGpuBatchItems',
  'runTimeoutMs',
  'loadTimeoutMs',
  'logLevel',
]);

/** What a repeated flag said before, and what it says now. */
export const append = (value: string, previous: readonly string[] | undefined): string[] => [
  ...(previous ?? []),
  value,
];

/** Adds the flags of servers to use. */
export function addServerFlags(command: Command, isRepeatable: boolean): void {
  const url = new Option(
    '--url <url>',
    isRepeatable
      ? 'server to use instead of an engine of its own; repeat for several'
      : 'server to use instead of an engine of its own',
  );
  command.addOption(isRepeatable ? url.argParser(append) : url);
  command.option('--api-key <text>', 'key of the server (default: TRIVEC_API_KEY)');
}

/** Adds the flags of `serve` that say how models run. */
export function addEngineFlags(command: Command): void {
  command.option('--config <file>', 'JSON file with settings, as for serve');
  for (const { key, valueText, description, defaultText, isList } of describeSettings()) {
    if (!jobSettingNames.has(key)) continue;
    const flag = valueText === null ? `${flagOf(key)} [true|false]` : `${flagOf(key)} <${valueText}>`;
    const told = key === 'logLevel' ? 'warn' : defaultText;
    const option = new Option(flag, `${description} (default: ${told})`).preset('true');
    command.addOption(isList ? option.argParser(append) : option);
  }
}

/** The engine's flags among the flags given. */
const engineFlags = (flags: Flags): [string, unknown][] =>
  Object.entries(flags).filter(
    ([key, value]) => value !== undefined && (key === 'config' || settingsMeta.has(key)) && key !== 'apiKey',
  );

/** Problems of giving servers and flags of an engine at the same time. */
export const mixedProblems = (flags: Flags): string[] =>
  engineFlags(flags).map(([key]) => `${flagOf(key)} says how models run here and has no effect with --url`);

/**
 * Settings of an engine without a transport.
 * @throws ConfigurationError
 */
export function engineSettings(flags: Flags): Settings {
  const own = Object.fromEntries(engineFlags(flags).filter(([key]) => key !== 'config'));
  const file = configFileOf(flags);
  const { settings, problems } = readSettings({ flags: own, environment, configFile: file });
  if (problems.length > 0) throw new ConfigurationError([...problems]);
  // A log among the lines of progress tells nobody anything, unless it was asked for.
  const isLogGiven = own['logLevel'] !== undefined || environment['TRIVEC_LOG_LEVEL'] !== undefined || file !== null;
  return isLogGiven ? settings : { ...settings, logLevel: 'warn' };
}

/** The key to send; null where there is none. */
export function apiKeyOf(flags: Flags): string | null {
  const { apiKey } = flags;
  if (typeof apiKey === 'string') return apiKey;
  // A server's own setting may list several.
  return environment['TRIVEC_API_KEY']?.split(',')[0]?.trim() || null;
}
