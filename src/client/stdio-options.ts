/** Owns how a server is started as a process of the client's own. */
import type { ClientOptions } from './options.ts';

/** A command that speaks RCP on its standard input and output. */
export interface StdioTarget {
  readonly command: string;
  readonly args?: readonly string[];
  readonly cwd?: string;
  /** Its whole environment; that of this process otherwise. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where its messages for people go. Default `inherit`. */
  readonly stderr?: 'inherit' | 'ignore';
}

/** Options of a client over standard input and output. */
export type StdioClientOptions = ClientOptions;
