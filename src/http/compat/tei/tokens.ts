/** Owns `/tokenize` and `/decode` of text-embeddings-inference. */
import { invalidField } from '../../../errors.ts';
import { vendorKey } from '../../../rpc/capabilities.ts';
import { Pace, writeList } from '../../../rpc/encode.ts';
import { JsonWriter } from '../../../rpc/json-writer.ts';
import { readOptionalBoolean, readOptionalObject, readOptionalString, type Members } from '../../../rpc/params.ts';
import type { TokenDetail } from '../../../rpc/served-facts.ts';
import type { Answer } from '../../answer.ts';
import type { CompatCall } from '../family.ts';
import { writeTextList, writeValue } from '../write-texts.ts';
import {
  checkFilledList,
  firstModelOf,
  isIdList,
  promptTextOf,
  readFilledText,
  readIds,
  readPrompt,
} from './inputs.ts';

/**
 * `[[{id, text, special, start, stop}…]…]` of each text, its prompt before it; places are bytes of UTF-8. Which model reads
 * them, `x-trivec.model` may say.
 * @throws invalidParams, unsupportedOption, overloaded; the signal's reason
 */
export async function answerTokenize({ body, served, signal }: CompatCall): Promise<Answer> {
  const members = readOptionalObject(body, 'body');
  const hasSpecialTokens = readOptionalBoolean(members, 'add_special_tokens') ?? true;
  const name = readModelName(members);
  const usual = firstModelOf(served, 'embed') ?? served.models[0];
  const model = name === null ? usual : served.models.find((each) => each.model === name);
  const prompt = promptTextOf(readPrompt(members, model), model);
  const texts = readTexts(members, served.limits.batchLimit);
  const prompted = texts.map((text) => prompt + text);
  const asked = { texts: prompted, hasSpecialTokens, field: 'inputs', model: name };
  return { status: 200, body: await served.tokenize(asked, signal, (tokens) => encodeTokens(prompted, tokens)) };
}

/**
 * `[text…]` of each list of ids, which are those of the model that `x-trivec.model` names where it is there.
 * @throws invalidParams, unsupportedOption, overloaded; the signal's reason
 */
export async function answerDecode({ body, served, signal }: CompatCall): Promise<Answer> {
  const members = readOptionalObject(body, 'body');
  const skipsSpecialTokens = readOptionalBoolean(members, 'skip_special_tokens') ?? true;
  const ids = readIdLists(members, served.limits.batchLimit);
  const texts = await served.decode(ids, skipsSpecialTokens, signal, readModelName(members));
  const writer = new JsonWriter();
  await writeTextList(writer, texts, new Pace());
  return { status: 200, body: writer.finish() };
}

/** Tokens are asked of any served model, though these routes have no word for one. */
function readModelName(members: Members): string | null {
  const vendor = readOptionalObject(members.get(vendorKey), vendorKey);
  return readOptionalString(vendor, 'model', `${vendorKey}.model`);
}

function readTexts(members: Members, limit: number): readonly string[] {
  const value = members.get('inputs') ?? null;
  if (typeof value === 'string') return [readFilledText(value, 'inputs')];
  if (!Array.isArray(value)) throw invalidField('inputs', 'must be a string or a list of strings');
  checkFilledList(value, 'inputs', limit);
  return value.map((text: unknown, index) => readFilledText(text, `inputs[${index}]`));
}

function readIdLists(members: Members, limit: number): readonly number[][] {
  const value = members.get('ids') ?? null;
  if (!Array.isArray(value)) throw invalidField('ids', 'must be a list of token ids, or a list of such lists');
  if (isIdList(value)) return [readIds(value, 'ids')];
  checkFilledList(value, 'ids', limit);
  return value.map((list: unknown, index) => {
    if (!Array.isArray(list)) throw invalidField(`ids[${index}]`, 'must be a list of token ids');
    return readIds(list, `ids[${index}]`);
  });
}

async function encodeTokens(texts: readonly string[], tokens: readonly TokenDetail[][]): Promise<Buffer> {
  const writer = new JsonWriter();
  const pace = new Pace();
  await writeList(writer, [...tokens.entries()], pace, ([index, list]) => {
    const byteOf = bytePlacesOf(texts[index] ?? '');
    return writeList(writer, list, pace, (token) => writeToken(writer, token, byteOf));
  });
  return writer.finish();
}

/** The byte at which each character (code point) of a text begins, and where the text ends. */
function bytePlacesOf(text: string): readonly number[] {
  const places = [0];
  let bytes = 0;
  for (const character of text) places.push((bytes += Buffer.byteLength(character)));
  return places;
}

/** Gives how many numbers it counts as. */
function writeToken(
  writer: JsonWriter,
  { id, text, isSpecial, start, end }: TokenDetail,
  byteOf: readonly number[],
): number {
  const placeOf = (character: number | null) => String(character === null ? null : (byteOf[character] ?? null));
  writer.ascii(`{"id":${id},"text":`);
  const written = writeValue(writer, text);
  writer.ascii(`,"special":${isSpecial},"start":${placeOf(start)},"stop":${placeOf(end)}}`);
  return written + 3;
}
