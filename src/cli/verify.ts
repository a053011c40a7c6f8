/** Owns the command `models verify`. */
import { relative, sep } from 'node:path';
import { Option } from 'commander';
import type { Command } from 'commander';
import type { HeadReport } from '../verify/verdict.ts';
import type { VerifyReport } from '../verify/verify-model.ts';
import { modelsDirOf } from '../model/bundled.ts';
import { settingsOf, type Flags } from './command-settings.ts';
import { processEntries } from './entries.ts';
import { findModel } from './find-model.ts';
import { showTable } from './model-tables.ts';

const verdicts: Readonly<Record<HeadReport['verdict'], string>> = {
  agrees: 'agrees',
  differs: 'DIFFERS',
  notCompared: 'not compared',
};

function showValues({ likeness, terms }: HeadReport): string {
  if (likeness === null) return '-';
  const { measure, worst, mean } = likeness;
  if (measure === 'difference') return `logits off by at most ${worst.toFixed(6)}, mean ${mean.toFixed(6)}`;
  const cosines = `cosine min ${worst.toFixed(6)}, mean ${mean.toFixed(6)}`;
  if (terms === null) return cosines;
  return `${cosines}; ${String(terms.shared)} terms the same, ${String(terms.differing)} not`;
}

function showTolerance({ likeness, tolerance }: HeadReport): string {
  if (likeness === null || tolerance === null) return '-';
  return likeness.measure === 'difference'
    ? `at most ${String(tolerance.maxDifference)}`
    : `at least ${String(tolerance.minCosine)}`;
}

const rowOf = (head: HeadReport): string[] => [
  head.head,
  `${String(head.sameIds)} of ${String(head.texts)}`,
  showValues(head),
  showTolerance(head),
  verdicts[head.verdict],
];

function notesOf({ head, verdict, reason, sameIds, texts }: HeadReport): string[] {
  if (verdict === 'notCompared') return [`${head} cannot be compared, because ${reason ?? ''}`];
  const difference = `${head}: transformers.js has other token ids for ${String(texts - sameIds)} of ${String(texts)} texts`;
  return [
    ...(reason === null ? [] : [`${head} differs: ${reason}`]),
    // Its ids are known to differ from the reference library's, for rare characters above all.
    ...(sameIds < texts ? [`${difference}, which may be its own fault; their values were left out`] : []),
  ];
}

/** A path below the working directory as seen from there, any other as it is. */
function showPath(path: string): string {
  const here = relative(process.cwd(), path);
  return here.startsWith(`..${sep}`) ? path : here;
}

/** The report as text for a person. */
export function showVerifyReport(report: VerifyReport): string {
  const { modelId, precision, graphPath, transformersJs, heads } = report;
  const about = [
    ['model', modelId],
    ['graph', `${showPath(graphPath)}, served as ${precision}`],
    ['against', transformersJs === null ? 'transformers.js' : `transformers.js ${transformersJs}`],
  ];
  const table = [['HEAD', 'SAME IDS', 'VALUES', 'TOLERANCE', 'RESULT'], ...heads.map(rowOf)];
  const notes = heads.flatMap(notesOf);
  return [showTable(about), '', showTable(table), ...(notes.length > 0 ? ['', ...notes] : [])].join('\n');
}

async function verify(model: string, flags: Flags): Promise<void> {
  const settings = settingsOf(flags, ['modelsDir', 'cacheDir', 'precision']);
  // The tokenizer and the models are loaded for the commands that need them only.
  const { verifyModel } = await import('../verify/verify-model.ts');
  const found = await findModel(model, modelsDirOf(settings));
  const { precision, cacheDir } = settings;
  const report = await verifyModel({ ...found, precision, cacheDir, entries: processEntries });
  process.stdout.write(`${flags['json'] === true ? JSON.stringify(report, null, 2) : showVerifyReport(report)}\n`);
  if (!report.heads.every(({ verdict }) => verdict === 'agrees')) process.exitCode = 1;
}

/** Adds `models verify`, to the command `models` where there is one. */
export function addVerifyCommand(program: Command): void {
  const models =
    program.commands.find((command) => command.name() === 'models') ??
    program.command('models').description('get, list and inspect models');
  models
    .command('verify')
    .description(
      'compare what a model serves on a CPU with what transformers.js gives for the same graph file; ' +
        'exit code 1 where it differs or cannot be compared',
    )
    .argument('<model>', 'a folder, the name of one in the models directory, or a model in the hub cache')
    .addOption(
      new Option('--precision <text>', 'weights to serve, as for serve').choices(['auto', 'int8', 'fp16', 'fp32']),
    )
    .option('--config <file>', 'JSON file with settings, as for serve')
    .option('--models-dir <text>', 'directory with one folder per model')
    .option('--cache-dir <text>', 'directory for what is derived from models')
    .option('--json', 'print JSON')
    .action(verify);
}
