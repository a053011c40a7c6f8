/** Owns the normaliser of BERT's tokenizers where the settings beside a definition contradict it. */

/** What the settings say of it. */
export interface BertSettings {
  readonly lowercase: boolean;
  /** null: accents go where letters are lower-cased. */
  readonly stripAccents: boolean | null;
  readonly handleChineseChars: boolean;
}

/** The part of a definition that is looked at. */
export interface NormalizedDefinition {
  readonly normalizer?: Readonly<Record<string, unknown>> | null;
}

/** The definition with the normaliser that the settings ask for; the same object where it has that already. */
export function withBertSettings<Definition extends NormalizedDefinition>(
  definition: Definition,
  { lowercase, stripAccents, handleChineseChars }: BertSettings,
): Definition {
  const { normalizer } = definition;
  if (normalizer?.['type'] !== 'BertNormalizer') return definition;
  const isSame =
    normalizer['lowercase'] === lowercase &&
    (normalizer['strip_accents'] ?? null) === stripAccents &&
    normalizer['handle_chinese_chars'] === handleChineseChars;
  if (isSame) return definition;
  const wanted = { lowercase, strip_accents: stripAccents, handle_chinese_chars: handleChineseChars };
  return { ...definition, normalizer: { ...normalizer, ...wanted } };
}
