/** Owns the layout of a table, for a terminal and in Markdown. */

/** Headings and the rows under them, as text. */
export interface Table {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** For each column whether it holds numbers, which stand to the right. */
const numericColumns = ({ headings, rows }: Table): boolean[] =>
  headings.map((_, column) => rows.every((row) => /^(?:|(?=.*[-\d])[-+<>=\s\d.,%x]*\S?)$/u.test(row[column] ?? '')));

/** The rows under their headings, each column as wide as its widest cell, numbers to the right. */
export function formatTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const isNumeric = numericColumns({ headings, rows });
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) =>
        isNumeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(headings), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

/** The same in Markdown. */
export function formatMarkdownTable(table: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const rule = numericColumns(table).map((isNumeric) => (isNumeric ? '---:' : '---'));
  return [table.headings, rule, ...table.rows].map(line).join('\n');
}
