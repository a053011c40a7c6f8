/** Owns where the compiled entries of other processes lie. */
import { fileURLToPath } from 'node:url';

const entry = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/**
 * Entries of the program itself, of the server that a benchmark starts, and of the processes that run models, that try
 * devices, and that run the reference.
 */
export const processEntries = {
  main: entry('../main.js'),
  benchServer: entry('../bench/served.js'),
  executor: entry('../executor/main.js'),
  probe: entry('../executor/probe.js'),
  reference: entry('../verify/transformers-js-child.js'),
};
