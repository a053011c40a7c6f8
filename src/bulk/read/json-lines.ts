/** Owns reading JSON lines: an object a line; lines of nothing but blanks are no rows. */
import type { FilePosition, ReadRow } from '../row.ts';
import { badRow, rowOfFields, type FieldNames } from './fields.ts';
import { linesOf, notUtf8Reason, textOf, tooLongReason, type Line } from './lines.ts';

/** The rows of a file from a place on. */
export async function* readJsonLines(
  parts: AsyncIterable<Buffer>,
  from: FilePosition,
  name: string,
  fields: FieldNames,
): AsyncGenerator<readonly ReadRow[]> {
  for await (const lines of linesOf(parts, from, name)) yield lines.flatMap((line) => rowOf(line, fields) ?? []);
}

function rowOf({ bytes, number, next }: Line, fields: FieldNames): ReadRow | null {
  const place = { line: number, next };
  if (bytes === null) return badRow(place, tooLongReason);
  const text = textOf(bytes);
  if (text === null) return badRow(place, notUtf8Reason);
  if (text.trim() === '') return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the line.
    return badRow(place, 'is not valid JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return badRow(place, 'is not a JSON object');
  const own = (field: string): unknown =>
    Object.hasOwn(value, field) ? (value as Record<string, unknown>)[field] : undefined;
  return rowOfFields(place, fields, own(fields.text), fields.id === null ? undefined : own(fields.id));
}
