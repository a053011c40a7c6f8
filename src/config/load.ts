/** Owns how settings come about: flag over environment over file over default, every problem named at once. */
import { readFileSync } from 'node:fs';
import { ConfigurationError } from '../errors.ts';
import { flagOf, variableOf } from './names.ts';
import { settingsMeta, settingsSchema, type Settings } from './settings.ts';

/** Where settings come from. */
export interface SettingSources {
  /** Flags as parsed, by setting key. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly configFile: string | null;
  /** What stood on the command line and is no flag. */
  readonly unknownArguments?: readonly string[];
}

/** Settings, and what the operator should know although it is no error. */
export interface LoadedSettings {
  readonly settings: Settings;
  readonly warnings: readonly string[];
}

/** Variables that Kubernetes injects for services named trivec or trivec-something; the bare port holds an address. */
const injectedVariable = /^TRIVEC_(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const isInjected = (name: string, value: string) =>
  injectedVariable.test(name) || (/^TRIVEC_(\w+_)?PORT$/.test(name) && /^(tcp|udp|sctp):\/\//.test(value));

/** Variables of this program that are no settings. */
const otherVariables: ReadonlySet<string> = new Set(['TRIVEC_CONFIG', 'TRIVEC_TEST_REQUIRE']);

/** Where a value stood, as the operator knows it; the stronger place wins. */
type Origins = Map<string, { readonly name: string; readonly strength: number }>;
const strengths = { file: 1, variable: 2, flag: 3 } as const;

/** Settings with what is wrong about them; what is wrong has its default. */
export interface ReadSettings extends LoadedSettings {
  readonly problems: readonly string[];
}

/**
 * The settings of this start, frozen.
 * @throws ConfigurationError that names every problem
 */
export function loadSettings(sources: SettingSources): LoadedSettings {
  const { problems, ...loaded } = readSettings(sources);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return loaded;
}

/** The settings of this start, frozen, and every problem: a caller may have more of them to tell at the same time. */
export function readSettings(sources: SettingSources): ReadSettings {
  const problems: string[] = [
    ...(sources.unknownArguments ?? []).map((name) => `unknown argument ${name}; see --help`),
  ];
  const origins: Origins = new Map();
  const merged = new Map<string, unknown>();
  const put = (key: string, value: unknown, name: string, strength: number) => {
    merged.set(key, value);
    origins.set(key, { name, strength });
  };
  for (const [key, value] of readFile(sources.configFile, problems)) {
    put(key, value, `key ${key} in the config file`, strengths.file);
  }
  const { values, injected } = readEnvironment(sources.environment, problems);
  for (const [key, value] of values) put(key, value, variableOf(key), strengths.variable);
  for (const [key, value] of Object.entries(sources.flags)) {
    if (value !== undefined) put(key, value, flagOf(key), strengths.flag);
  }
  const parsed = settingsSchema.safeParse(Object.fromEntries(merged));
  for (const issue of parsed.error?.issues ?? []) {
    const key = String(issue.path[0] ?? '');
    problems.push(`${origins.get(key)?.name ?? (key || 'settings')}: ${issue.message}`);
    merged.delete(key);
  }
  const settings = parsed.data ?? settingsSchema.parse(Object.fromEntries(merged));
  problems.push(...contradictions(settings, origins));
  const told = [...new Set(problems)];
  for (const value of Object.values(settings)) Object.freeze(value);
  return { settings: Object.freeze(settings), warnings: warningsOf(settings, injected), problems: told };
}

function readFile(file: string | null, problems: string[]): [string, unknown][] {
  if (file === null) return [];
  let text: string;
  let content: unknown;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    problems.push(`config file ${file}: ${error instanceof Error ? error.message : String(error)}`);
    return [];
  }
  try {
    content = JSON.parse(text);
  } catch {
    // The parser's message quotes the file, which may hold a key.
    problems.push(`config file ${file}: is not valid JSON`);
    return [];
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    problems.push(`config file ${file}: must hold one JSON object`);
    return [];
  }
  return Object.entries(content).filter(([key]) => {
    if (settingsMeta.has(key)) return true;
    problems.push(`config file ${file}: unknown key ${key}`);
    return false;
  });
}

function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  problems: string[],
): { values: [string, string][]; injected: string[] } {
  const keyOf = new Map([...settingsMeta.keys()].map((key) => [variableOf(key), key]));
  const values: [string, string][] = [];
  const injected: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('TRIVEC_') || value === undefined) continue;
    if (isInjected(name, value)) {
      injected.push(name);
      continue;
    }
    const key = keyOf.get(name);
    // An empty variable is how shells and compose files spell "not set".
    if (key !== undefined && value !== '') values.push([key, value]);
    if (key === undefined && !otherVariables.has(name)) problems.push(`unknown environment variable ${name}`);
  }
  return { values, injected };
}

function contradictions(settings: Settings, origins: Origins): string[] {
  const problems = [...transportContradictions(settings, origins), ...keyContradictions(settings)];
  if (settings.maxBufferedBytes < settings.bodyLimitBytes) {
    problems.push('--max-buffered-bytes must not be below --body-limit-bytes: no body of that size would ever fit');
  }
  if ([settings.embedModel, settings.multiModel, settings.rerankModel].every((models) => models.length === 0)) {
    problems.push(
      'at least one of --embed-model, --multi-model and --rerank-model must be set: RCP needs embed or rerank',
    );
  }
  return problems;
}

function transportContradictions(settings: Settings, origins: Origins): string[] {
  const { socket, stdio, tlsCert, tlsKey } = settings;
  const problems: string[] = [];
  if ((tlsCert === null) !== (tlsKey === null)) problems.push('--tls-cert and --tls-key need each other');
  if (stdio && tlsCert !== null) problems.push('--stdio and --tls-cert exclude each other');
  if (socket === null) return problems;
  if (stdio) problems.push('--socket and --stdio exclude each other');
  if (tlsCert !== null) problems.push('--socket and --tls-cert exclude each other: nothing leaves the machine');
  const strength = origins.get('socket')?.strength ?? 0;
  for (const key of ['host', 'port']) {
    // A weaker place, such as the variables of an image, is overruled by the socket.
    if ((origins.get(key)?.strength ?? -1) >= strength) {
      problems.push(`--socket and ${flagOf(key)} exclude each other`);
    }
  }
  return problems;
}

function keyContradictions(settings: Settings): string[] {
  const { apiKey, apiKeyFile } = settings;
  const limits = ['keyRequestsPerSecond', 'keyRequestBurst', 'keyQueuedTokens'] as const;
  const problems: string[] = [];
  for (const key of limits) {
    if (settings[key] > 0 && apiKey === null && apiKeyFile === null) {
      problems.push(`${flagOf(key)} needs --api-key or --api-key-file: nobody has a key`);
    }
  }
  return problems;
}

const loopbackHosts: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);

/** True where only this machine can connect. */
export const isLoopbackHost = (host: string): boolean => loopbackHosts.has(host) || /^127(\.\d{1,3}){3}$/.test(host);

function warningsOf(settings: Settings, injected: readonly string[]): string[] {
  const warnings: string[] = [];
  if (injected.length > 0) {
    warnings.push(`ignored variables that Kubernetes injects for a service: ${[...injected].sort().join(', ')}`);
  }
  const hasKey = settings.apiKey !== null || settings.apiKeyFile !== null;
  if (!settings.stdio && settings.socket === null && !isLoopbackHost(settings.host) && !hasKey) {
    warnings.push(`anyone who reaches ${settings.host} can use this server; set --api-key, or TRIVEC_API_KEY`);
  }
  return warnings;
}

/** The settings as they may be printed: secrets hidden. */
export function printableSettings(settings: Settings): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).map(([key, value]) => {
      const isHidden = settingsMeta.get(key)?.isSecret === true && value !== null;
      return [key, isHidden ? '(hidden)' : value];
    }),
  );
}
