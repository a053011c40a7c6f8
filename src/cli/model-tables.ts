/** Owns tables for a person: their form, and the one of the models that are here. */
import { showBytes } from '../model/hub/progress.ts';
import type { InventoryEntry } from '../model/inventory.ts';

/** A table with columns as wide as their widest cell. */
export function showTable(rows: readonly (readonly string[])[]): string {
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
