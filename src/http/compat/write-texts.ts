/** Owns writing the caller's own texts into an answer, in slices as vectors are. */
import { writeList, type Pace } from '../../rpc/encode.ts';
import type { JsonWriter } from '../../rpc/json-writer.ts';

/** Characters that take as long to write as one number. */
const charactersPerNumber = 16;

/** Writes a value as JSON; gives how many numbers it counts as. */
export function writeValue(writer: JsonWriter, value: unknown): number {
  const json = JSON.stringify(value);
  writer.text(json);
  return Math.ceil(json.length / charactersPerNumber);
}

/** Writes a list of texts. */
export const writeTextList = (writer: JsonWriter, texts: readonly string[], pace: Pace): Promise<void> =>
  writeList(writer, texts, pace, (text) => writeValue(writer, text));
