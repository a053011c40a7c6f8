/** Owns what the commands make of their flags: settings, with those of the file that `--config` or the environment names. */
import { environment } from '../config/environment.ts';
import { loadSettings } from '../config/load.ts';
import type { Settings } from '../config/settings.ts';

/** Flags as the command line gives them. */
export type Flags = Readonly<Record<string, unknown>>;

/** The file with settings; null where none is named. */
export function configFileOf({ config }: Flags): string | null {
  return typeof config === 'string' ? config : (environment['TRIVEC_CONFIG'] ?? null);
}

/**
 * The settings that the flags of these names and everything else amount to.
 * @throws ConfigurationError
 */
export function settingsOf(flags: Flags, names: readonly (keyof Settings)[]): Settings {
  const own = Object.fromEntries(names.map((name) => [name, flags[name]]));
  return loadSettings({ flags: own, environment, configFile: configFileOf(flags) }).settings;
}
