/** Owns how models are shown to a person. */
import { showBytes } from '../model/hub/progress.ts';
import type { ModelReport } from '../model/inspect.ts';
import type { InventoryEntry } from '../model/inventory.ts';

/** A table with columns as wide as their widest cell. */
function showTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const showRow = (row: readonly string[]): string =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  return rows.map((row) => showRow(row).trimEnd()).join('\n');
}

const commitDigits = 12;

function rowOf({ modelId, sizeBytes, commit, revisions, precisions }: InventoryEntry): string[] {
  return [
    modelId,
    showBytes(sizeBytes),
    commit?.slice(0, commitDigits) ?? '-',
    revisions.join(',') || '-',
    precisions.join(',') || 'none that can be served',
  ];
}

/** The models that are here, as a table. */
export const showModels = (models: readonly InventoryEntry[]): string =>
  showTable([['MODEL', 'SIZE', 'COMMIT', 'REVISIONS', 'WEIGHTS'], ...models.map(rowOf)]);

/** What a model's files say, a fact a line. */
export function showReport(report: ModelReport): string {
  const { prompts, chosenGraph } = report;
  const rows = [
    ['model', report.modelId],
    ['folder', report.folder],
    ['architecture', report.architecture],
    ['is', report.role ?? 'nothing that can be served'],
    ['serves', report.serves.join(', ') || 'nothing'],
    ['pooling', `${report.pooling ?? 'none'}${report.isNormalized ? ', normalized' : ''}`],
    ['limit', report.maxTokens === null ? 'not stated' : `${String(report.maxTokens)} tokens`],
    ['sizes', `hidden ${String(report.hiddenSize)}, vocabulary ${String(report.vocabularySize)}`],
    ['query prompt', JSON.stringify(prompts.query)],
    ['document prompt', JSON.stringify(prompts.document)],
    ...report.graphs.map(({ path, precision, sizeBytes, externalFiles }) => [
      `graph ${precision}`,
      `${path}, ${showBytes(sizeBytes)}${externalFiles.length > 0 ? `, with ${externalFiles.join(', ')}` : ''}`,
    ]),
    ['used on a CPU', chosenGraph.cpu ?? 'none'],
    ['used on a GPU', chosenGraph.gpu ?? 'none'],
    ...report.problems.map((problem) => ['problem', problem]),
  ];
  return showTable(rows);
}
