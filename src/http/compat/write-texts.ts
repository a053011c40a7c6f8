/** Owns writing the caller's own texts into an answer, in slices as vectors are. */
import { writeList, type Pace } from '../../rpc/encode.ts';
import type { JsonWriter } from '../../rpc/json-writer.ts';

/** Characters that take as long to write as one number. */
const charactersPerNumber = 16;

/** Writes what is JSON already; gives how many numbers it counts as. */
export function writeRaw(writer: JsonWriter, json: string): number {
  writer.text(json);
  return Math.ceil(json.length / charactersPerNumber);
}

/** Writes a value as JSON; gives how many numbers it counts as. */
export const writeValue = (writer: JsonWriter, value: unknown): number => writeRaw(writer, JSON.stringify(value));

/** Writes a list of texts. */
export const writeTextList = (writer: JsonWriter, texts: readonly string[], pace: Pace): Promise<void> =>
  writeList(writer, texts, pace, (text) => writeValue(writer, text));
