/** Owns the command line: commands and flags, built from the settings schema. */
import { Command, Option } from 'commander';
import { flagOf } from '../config/names.ts';
import { describeSettings } from '../config/describe.ts';
import { addBenchCommand } from './bench.ts';
import { addDevicesCommand } from './devices.ts';
import { addEmbedCommand } from './embed.ts';
import { addInstallCudaCommand } from './install-cuda.ts';
import { addModelCommands } from './models.ts';
import { addServerCommands } from './ping.ts';
import { addQuantizeCommand } from './quantize.ts';
import { addRerankCommand } from './rerank.ts';
import { addVerifyCommand } from './verify.ts';

/** What a repeated flag said before, and what it says now. */
const append = (value: string, previous: readonly string[] | undefined): string[] => [...(previous ?? []), value];

/** The `trivec` program. `serve` is the command where none is named. */
export function createProgram(version: string): Command {
  const program = new Command('trivec')
    .description('One server for dense, sparse and multi-vector embeddings and reranking, speaking RCP/1')
    .version(version)
    .showHelpAfterError('(--help lists every flag)')
    .exitOverride();
  const command = program
    .command('serve', { isDefault: true })
    .description('serve RCP over HTTP, or over stdio with --stdio')
    .option('--config <file>', 'JSON file with settings; flags and TRIVEC_* variables are stronger')
    .option('--print-config', 'print the settings in force as JSON and exit')
    .option('--prepare-only', 'write what is derived from the models to the cache directory and exit')
    // Told together with every other problem of the configuration.
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async (flags: Record<string, unknown>, { args }: Command) => {
      // The server is large: the other commands do not carry it.
      const { serve } = await import('./serve.ts');
      await serve(flags, args, version);
    });
  for (const { key, valueText, description, defaultText, isList } of describeSettings()) {
    // Values stay as they were typed: the schema judges flags, variables and file alike.
    const flag = valueText === null ? `${flagOf(key)} [true|false]` : `${flagOf(key)} <${valueText}>`;
    const option = new Option(flag, `${description} (default: ${defaultText})`).preset('true');
    command.addOption(isList ? option.argParser(append) : option);
    if (valueText === null && defaultText === 'true') {
      command.addOption(new Option(flagOf(key).replace('--', '--no-')).hideHelp());
    }
  }
  addEmbedCommand(program, version);
  addRerankCommand(program, version);
  addServerCommands(program);
  addModelCommands(program);
  addQuantizeCommand(program);
  addVerifyCommand(program);
  addDevicesCommand(program);
  addInstallCudaCommand(
    program.commands.find((known) => known.name() === 'devices') ??
      program.command('devices').description('say what this machine can run models on'),
  );
  addBenchCommand(program, version);
  return program;
}
