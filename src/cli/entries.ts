/** Owns where the compiled entries of other processes lie. */
import { fileURLToPath } from 'node:url';

const entry = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Entries of the processes that run models, that try devices, and that run the reference to compare with. */
export const processEntries = {
  executor: entry('../executor/main.js'),
  probe: entry('../executor/probe.js'),
  reference: entry('../verify/transformers-js-child.js'),
};
