/** Owns reading plain text: a text a line, an empty line is an empty text, so that row n is line n. */
import type { FilePosition, ReadRow } from '../row.ts';
import { badRow } from './fields.ts';
import { linesOf, notUtf8Reason, textOf, tooLongReason } from './lines.ts';

/** The rows of a file from a place on. */
export async function* readPlainText(
  parts: AsyncIterable<Buffer>,
  from: FilePosition,
  name: string,
): AsyncGenerator<readonly ReadRow[]> {
  for await (const lines of linesOf(parts, from, name)) {
    yield lines.map(({ bytes, number, next }) => {
      const place = { line: number, next };
      if (bytes === null) return badRow(place, tooLongReason);
      const text = textOf(bytes);
      return text === null ? badRow(place, notUtf8Reason) : { ...place, text, id: null, reason: null };
    });
  }
}
