#!/usr/bin/env node
/** Owns the process: arguments to a command, errors to an exit code. */
import { readFileSync } from 'node:fs';
import { CommanderError } from 'commander';
import { createProgram } from './cli/program.ts';
import { ConfigurationError } from './errors.ts';

/** What the shell sees: 0 after a clean stop, 2 for a bad configuration, 1 for anything else. */
const exitCodes = { configuration: 2, failure: 1 } as const;

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

try {
  await createProgram(version).parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has written its own message; help and version are no errors.
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.configuration;
  } else if (error instanceof ConfigurationError) {
    for (const problem of error.problems) process.stderr.write(`trivec: ${problem}\n`);
    process.exitCode = exitCodes.configuration;
  } else {
    process.stderr.write(`trivec: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exitCode = exitCodes.failure;
  }
}
