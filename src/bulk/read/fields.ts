/** Owns reading a text and an id out of the fields of a row, by one rule for every kind of file. */
import type { FilePosition, ReadRow, RowId } from '../row.ts';

/** Which fields of a row are used. */
export interface FieldNames {
  readonly text: string;
  /** null: rows are known by their number only. */
  readonly id: string | null;
}

/** Where a row is. */
export interface RowPlace {
  readonly line: number;
  readonly next: FilePosition | null;
}

/** A row that is left out, and why. */
export const badRow = (place: RowPlace, reason: string): ReadRow => ({ ...place, text: null, id: null, reason });

/** A row by the values of its fields; whatever is not a text, or no id, makes it a bad one. */
export function rowOfFields(place: RowPlace, fields: FieldNames, text: unknown, id: unknown): ReadRow {
  if (text === undefined) return badRow(place, `has no field ${fields.text}`);
  if (typeof text !== 'string') return badRow(place, `its field ${fields.text} is ${kindOf(text)}, not a text`);
  if (fields.id === null) return { ...place, text, id: null, reason: null };
  if (id === undefined) return badRow(place, `has no field ${fields.id}`);
  if (!isId(id)) return badRow(place, `its field ${fields.id} is ${kindOf(id)}, not a text or a number`);
  if (typeof id === 'number' && Number.isInteger(id) && !Number.isSafeInteger(id)) {
    return badRow(
      place,
      `its field ${fields.id} is a number beyond 2^53, which cannot be read exactly: write it as text`,
    );
  }
  return { ...place, text, id, reason: null };
}

const isId = (value: unknown): value is RowId =>
  typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value));

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
