/** Owns the commands `models pull`, `models list` and `models inspect`. */
import { Option } from 'commander';
import type { Command } from 'commander';
import { environment } from '../config/environment.ts';
import { readHubSettings } from '../config/hub.ts';
import { ConfigurationError } from '../errors.ts';
import { thisCpu } from '../model/graph-variant.ts';
import type { WantedPrecision } from '../model/hub/choose-files.ts';
import { lineProgress, silentProgress } from '../model/hub/progress.ts';
import type { PullProgress } from '../model/hub/progress.ts';
import type { Hub } from '../model/hub/pull.ts';
import { isRevision, requireRepository, showRepository } from '../model/hub/repository.ts';
import type { Repository } from '../model/hub/repository.ts';
import { inspectModel } from '../model/inspect.ts';
import { listModels } from '../model/inventory.ts';
import { modelsDirOf } from '../model/bundled.ts';
import { settingsOf, type Flags } from './command-settings.ts';
import { findModel } from './find-model.ts';
import { showReport } from './model-report.ts';
import { showModels } from './model-tables.ts';
import { withBars } from './pull-bars.ts';
import { collectingProgress } from './garbage.ts';

const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

async function openHub(progress: PullProgress): Promise<Hub> {
  const { cacheDir, ...connection } = readHubSettings(environment);
  // Loaded by the commands that need it, since it brings the downloader with it.
  const { systemPacing } = await import('../model/hub/retry.ts');
  return { connection, cacheDir, pacing: systemPacing, progress };
}

/**
 * The repository that a name and `--revision` mean together.
 * @throws ConfigurationError
 */
export function repositoryOf(name: string, revision: unknown): Repository {
  const repository = requireRepository(name);
  if (revision === undefined) return repository;
  if (name.includes('@')) throw new ConfigurationError([`${name} names a revision already: leave out --revision`]);
  if (typeof revision !== 'string' || !isRevision(revision)) {
    throw new ConfigurationError([`--revision: ${JSON.stringify(revision)} is no branch, tag or commit`]);
  }
  return { ...repository, revision };
}

async function pull(name: string, flags: Flags): Promise<void> {
  const repository = repositoryOf(name, flags['revision']);
  const wanted = flags['precision'] as WantedPrecision;
  if (settingsOf(flags, ['offline']).offline) {
    const { createLocator } = await import('../model/hub/locate.ts');
    const hub = await openHub(silentProgress);
    const locate = createLocator({ hub, isOffline: true, wanted: wanted === 'all' ? 'auto' : wanted, device: thisCpu });
    print((await locate(`${repository.id}@${repository.revision}`))?.folder ?? '');
    return;
  }
  const { pullModel } = await import('../model/hub/pull.ts');
  const run = async (progress: PullProgress) =>
    pullModel(await openHub(collectingProgress(progress)), repository, wanted);
  const lines = lineProgress((line) => process.stderr.write(`${line}\n`));
  const title = `pulling ${showRepository(repository)}`;
  const { folder } = await (process.stdout.isTTY ? withBars(title, run) : run(lines));
  print(folder);
}

async function list(flags: Flags): Promise<void> {
  const modelsDir = modelsDirOf(settingsOf(flags, ['modelsDir']));
  const models = await listModels(modelsDir, readHubSettings(environment).cacheDir);
  if (flags['json'] === true) print(JSON.stringify(models, null, 2));
  else print(showModels(models));
}

async function inspect(name: string, flags: Flags): Promise<void> {
  const { folder, options } = await findModel(name, modelsDirOf(settingsOf(flags, ['modelsDir'])));
  const report = await inspectModel(folder, name, options);
  print(flags['json'] === true ? JSON.stringify(report, null, 2) : showReport(report));
}

/** Adds `models` and its commands. */
export function addModelCommands(program: Command): void {
  const models = program.command('models').description('get, list and inspect models');
  const configOption = new Option('--config <file>', 'JSON file with settings, as for serve');
  const directoryOption = new Option('--models-dir <text>', 'directory with one folder per model');
  const jsonOption = new Option('--json', 'print JSON');
  models
    .command('pull')
    .description('get a model from the Hugging Face hub into its cache and print the folder')
    .argument('<name>', 'org/name, or org/name@revision')
    .option('--revision <text>', 'branch, tag or commit')
    .addOption(
      new Option('--precision <text>', 'weights to get; auto takes the ones a CPU would be given')
        .choices(['auto', 'int8', 'fp16', 'fp32', 'all'])
        .default('auto'),
    )
    .addOption(new Option('--offline [true|false]', 'open no connection: only say where the model is').preset('true'))
    .addOption(configOption)
    .action(pull);
  models
    .command('list')
    .description('list the models that are here')
    .addOption(directoryOption)
    .addOption(jsonOption)
    .addOption(configOption)
    .action(list);
  models
    .command('inspect')
    .description(
      'say what the files of a model say: what it serves, its limits, its graph files and how they would be used',
    )
    .argument('<name>', 'a folder, the name of one in the models directory, or a model in the hub cache')
    .addOption(directoryOption)
    .addOption(jsonOption)
    .addOption(configOption)
    .action(inspect);
}
