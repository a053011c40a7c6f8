/** Owns the normaliser of a tokenizer's definition where the settings beside it ask for another. */

/** What the settings say of BERT's normaliser. */
export interface BertSettings {
  readonly lowercase: boolean;
  /** null: accents go where letters are lower-cased. */
  readonly stripAccents: boolean | null;
  readonly handleChineseChars: boolean;
}

/** What the settings say of any normaliser. */
export interface NormalizerSettings {
  /** null where the definition's own form counts. */
  readonly bert: BertSettings | null;
  /** Whether all but special tokens is lower-cased before anything else. */
  readonly lowercasesTexts: boolean;
}

type Normalizer = Readonly<Record<string, unknown>>;

/** The part of a definition that is looked at. */
export interface NormalizedDefinition {
  readonly normalizer?: Normalizer | null;
}

const partsOf = (normalizer: Normalizer): readonly Normalizer[] =>
  normalizer['type'] === 'Sequence' ? (normalizer['normalizers'] as readonly Normalizer[]) : [normalizer];

const lowercase: Normalizer = { type: 'Lowercase' };

function withLowercase(normalizer: Normalizer | null): Normalizer {
  const parts = normalizer === null ? [] : partsOf(normalizer);
  if (normalizer !== null && parts.some(({ type }) => type === lowercase['type'])) return normalizer;
  return { type: 'Sequence', normalizers: [lowercase, ...parts] };
}

/** BERT's normaliser as the settings ask for it; the same object for any other, or where it is so already. */
function withBertSettings(normalizer: Normalizer | null, settings: BertSettings): Normalizer | null {
  if (normalizer?.['type'] !== 'BertNormalizer') return normalizer;
  const isSame =
    normalizer['lowercase'] === settings.lowercase &&
    (normalizer['strip_accents'] ?? null) === settings.stripAccents &&
    normalizer['handle_chinese_chars'] === settings.handleChineseChars;
  if (isSame) return normalizer;
  const { lowercase: isLower, stripAccents, handleChineseChars } = settings;
  return { ...normalizer, lowercase: isLower, strip_accents: stripAccents, handle_chinese_chars: handleChineseChars };
}

/** The definition with the normaliser that the settings ask for; the same object where it has that already. */
export function withSettings<Definition extends NormalizedDefinition>(
  definition: Definition,
  { bert, lowercasesTexts }: NormalizerSettings,
): Definition {
  const own = definition.normalizer ?? null;
  const stated = bert === null ? own : withBertSettings(own, bert);
  const normalizer = lowercasesTexts ? withLowercase(stated) : stated;
  return normalizer === own ? definition : { ...definition, normalizer };
}
