/** Owns the command `models quantize`. */
import type { Command } from 'commander';
import type { QuantizeReport } from '../compare.ts';
import { modelsDirOf } from '../model/bundled.ts';
import { settingsOf, type Flags } from './command-settings.ts';
import { processEntries } from './entries.ts';
import { findModel } from './find-model.ts';

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** The report as lines for a person. */
export function showQuantizeReport({ path, bytes, likeness, speed }: QuantizeReport): string {
  const { measure, head, worst, mean, texts } = likeness;
  const values =
    measure === 'cosine'
      ? `cosine min ${worst.toFixed(4)}, mean ${mean.toFixed(4)}`
      : `logits differ by at most ${worst.toFixed(4)}, mean ${mean.toFixed(4)}`;
  return [
    `graph   ${path}`,
    `values  ${values} (${head}, ${String(texts)} texts, against fp32)`,
    `size    ${megabytes(bytes.fp32)} -> ${megabytes(bytes.int8)}`,
    `speed   ${speed.toFixed(2)} times fp32 on this machine, one thread`,
  ].join('\n');
}

async function quantize(model: string, flags: Flags): Promise<void> {
  const settings = settingsOf(flags, ['modelsDir', 'cacheDir']);
  // The tokenizer and the models are loaded for the commands that need them only.
  const { quantizeAndCompare } = await import('../compare.ts');
  const { folder, options } = await findModel(model, modelsDirOf(settings));
  const report = await quantizeAndCompare(folder, settings.cacheDir, processEntries.executor, options);
  process.stdout.write(`${flags['json'] === true ? JSON.stringify(report, null, 2) : showQuantizeReport(report)}\n`);
}

/** Adds `models quantize`, to the command `models` where there is one. */
export function addQuantizeCommand(program: Command): void {
  const models =
    program.commands.find((command) => command.name() === 'models') ??
    program.command('models').description('get, list and inspect models');
  models
    .command('quantize')
    .description(
      'make int8 weights per output channel for a CPU, in the cache, and measure them; --precision int8 serves them',
    )
    .argument('<model>', 'a folder, the name of one in the models directory, or a model in the hub cache')
    .option('--config <file>', 'JSON file with settings, as for serve')
    .option('--models-dir <text>', 'directory with one folder per model')
    .option('--cache-dir <text>', 'directory for what is derived from models')
    .option('--json', 'print JSON')
    .action(quantize);
}
