/** Owns reading all files of an input as one row of rows. */
import type { FilePosition, InputPosition, ReadRow } from '../row.ts';
import { readCsv } from './csv.ts';
import type { FieldNames } from './fields.ts';
import { bytesOf, type InputFile } from './inputs.ts';
import { readJsonLines } from './json-lines.ts';
import { readParquet } from './parquet.ts';
import { readPlainText } from './plain-text.ts';

/** Rows of one file that were read together. */
export interface RowsOfFile {
  readonly file: number;
  readonly rows: readonly ReadRow[];
}

/** The rows of the files from a place on. */
export async function* readRows(
  files: readonly InputFile[],
  from: InputPosition,
  fields: FieldNames,
): AsyncGenerator<RowsOfFile> {
  for (const [number, file] of files.entries()) {
    if (number < from.file) continue;
    const start = number === from.file ? from : { offset: 0, line: 0 };
    for await (const rows of readFile(file, start, fields)) yield { file: number, rows };
  }
}

function readFile(file: InputFile, from: FilePosition, fields: FieldNames): AsyncIterable<readonly ReadRow[]> {
  const { kind, name, path } = file;
  switch (kind) {
    case 'jsonl':
      return readJsonLines(bytesOf(file, from.offset), from, name, fields);
    case 'text':
      return readPlainText(bytesOf(file, from.offset), from, name);
    case 'parquet':
      return readParquet(path ?? '', from.offset, name, fields);
    case 'csv':
    case 'tsv':
      return readCsv((offset) => bytesOf(file, offset), from, name, { delimiter: kind === 'csv' ? ',' : '\t', fields });
  }
}
