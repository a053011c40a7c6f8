/** Owns where keys come from: those of the settings, and those of a file that is read again when it changes. */
import { readFile, stat } from 'node:fs/promises';
import { ConfigurationError } from '../errors.ts';
import { fileVersions, watchFiles } from './file-watch.ts';
import { maxKeys, parseKeyFile } from './key-file.ts';
import type { KeyEntry } from './key-file.ts';
import { createKeyRing, identifyEverybody } from './key-ring.ts';
import type { Identify, KeyRingParts } from './key-ring.ts';
import { fileProblem, isReadableByAll } from './secret-file.ts';

/** Where keys are. */
export interface KeySources {
  readonly apiKeys: readonly string[] | null;
  readonly file: string | null;
}

/** What is told to the operator. */
export interface AccessLog {
  info(fields: Record<string, unknown>, message: string): void;
  warn(fields: Record<string, unknown>, message: string): void;
}

/** Keys in force until they are closed. */
export interface Keys {
  readonly identify: Identify;
  /** Ends looking at the file. */
  close(): void;
}

/** Largest file of keys. @unit bytes */
const maxFileBytes = 1_048_576;

/**
 * The keys of a file.
 * @throws ConfigurationError
 */
export async function readKeyFile(path: string): Promise<KeyEntry[]> {
  const problem = (text: string) => new ConfigurationError([`key file ${path}: ${text}`]);
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > maxFileBytes) throw problem(`is over ${String(maxFileBytes)} bytes`);
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw error instanceof ConfigurationError ? error : problem(fileProblem(error));
  }
  const parsed = parseKeyFile(text);
  if ('problems' in parsed) throw new ConfigurationError(parsed.problems.map((each) => `key file ${path}: ${each}`));
  return parsed.entries;
}

/**
 * The keys of both sources. A file that later cannot be used changes nothing and is told once.
 * @throws ConfigurationError where the file cannot be used now
 */
export async function openKeys(
  { apiKeys, file }: KeySources,
  parts: KeyRingParts & { readonly log: AccessLog },
): Promise<Keys> {
  const { log, clock } = parts;
  const ofSettings = (apiKeys ?? []).map((key) => ({ key, name: null, limits: {} }));
  if (ofSettings.length > maxKeys) throw new ConfigurationError([`--api-key: at most ${String(maxKeys)} keys`]);
  if (file === null) {
    if (ofSettings.length === 0) return { identify: identifyEverybody, close: () => undefined };
    return { identify: createKeyRing(ofSettings, parts).identify, close: () => undefined };
  }
  // Looked at before it is read: what is written meanwhile is seen at the next look.
  const versions = await fileVersions([file]);
  const ring = createKeyRing([...ofSettings, ...(await readKeyFile(file))], parts);
  if (await isReadableByAll(file)) log.warn({ file }, 'every user of this machine can read the file of keys');
  const onChange = async () => {
    try {
      const entries = await readKeyFile(file);
      ring.replace([...ofSettings, ...entries]);
      log.info({ file, keys: entries.length }, 'the keys were read again');
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      log.warn({ problems: error.problems }, 'the keys stay as they were: their file cannot be used');
    }
  };
  return { identify: ring.identify, close: watchFiles({ paths: [file], clock, onChange }, versions) };
}
