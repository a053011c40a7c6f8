/** Owns the questions to a library from which a model's templates are derived and then checked. */
import { ConfigurationError } from '../errors.ts';
import type { TokenLibrary, TypedEncoding } from './library.ts';
import { assemblePair, assembleSingle, deriveTemplates } from './template.ts';
import type { AssembledIds, TemplateProbe, Templates } from './template.ts';

/** Tried in turn: a small vocabulary may know none of the first words, or use one of them as a special token. */
const probeTexts: readonly (readonly [string, string])[] = [
  ['hello', 'world'],
  ['a', 'b'],
  ['1', '2'],
  ['the', 'of'],
];

/** Differs from the probes in ids and lengths, so that a wrong guess shows. */
const checkTexts = ['the quick (brown) fox', 'jumps 12 times over it'] as const;

async function probe(library: TokenLibrary, texts: readonly [string, string]): Promise<TemplateProbe> {
  const [first = [], second = []] = await library.encodeBatch(texts);
  return {
    first: Array.from(first),
    second: Array.from(second),
    single: await library.encodeWithSpecialTokens(texts[0], null),
    pair: await library.encodeWithSpecialTokens(texts[0], texts[1]),
  };
}

function isSame(assembled: AssembledIds, expected: TypedEncoding): boolean {
  return (
    assembled.ids.length === expected.ids.length &&
    expected.ids.every((id, index) => assembled.ids[index] === id) &&
    expected.typeIds.every((typeId, index) => (assembled.typeIds?.[index] ?? 0) === typeId)
  );
}

async function isConfirmed(library: TokenLibrary, templates: Templates): Promise<boolean> {
  const [first = [], second = []] = await library.encodeBatch(checkTexts);
  return (
    isSame(assembleSingle(templates.single, first), await library.encodeWithSpecialTokens(checkTexts[0], null)) &&
    isSame(
      assemblePair(templates.pair, first, second),
      await library.encodeWithSpecialTokens(checkTexts[0], checkTexts[1]),
    )
  );
}

/**
 * The model's templates, confirmed on texts other than those they were derived from.
 * @throws ConfigurationError where the library's answers follow no template
 */
export async function probeTemplates(library: TokenLibrary): Promise<Templates> {
  for (const texts of probeTexts) {
    const templates = deriveTemplates(await probe(library, texts));
    if (templates !== null && (await isConfirmed(library, templates))) return templates;
  }
  throw new ConfigurationError(['its special tokens follow no template of prefix, middle and suffix']);
}
