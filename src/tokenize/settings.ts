/** Owns the settings beside `tokenizer.json` that change what the reference gives for a text. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import { tokenizerFileName } from './library.ts';
import type { BertSettings, NormalizerSettings } from './normalizer.ts';
import type { KeptSide } from './window.ts';

/** What the files around the tokenizer say. */
export interface TokenizerSettings extends NormalizerSettings {
  /** The end of a text that is kept where it is too long. */
  readonly keptSide: KeptSide;
  /** False: the model is fed segment 0 for every token, whatever the template says. */
  readonly hasTypeIds: boolean;
  /** Ids of tokens that are marked special. */
  readonly specialIds: ReadonlySet<number>;
}

type Members = Readonly<Record<string, unknown>>;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The members of a JSON file; none where there is no such file. */
async function readMembers(path: string): Promise<Members> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {};
    throw error;
  }
  try {
    const content: unknown = JSON.parse(text);
    if (isMembers(content)) return content;
  } catch {
    // Said below.
  }
  throw new ConfigurationError([`${path}: is not JSON`]);
}

/** Classes that make their normaliser anew from their own settings. @source transformers 4.57 and 5 */
const bertClasses: ReadonlySet<string> = new Set(
  ['Bert', 'DistilBert', 'Electra', 'Funnel', 'LayoutLM', 'MobileBert', 'MPNet', 'SqueezeBert'].map((name) =>
    name.toLowerCase(),
  ),
);

/** Whether the tokenizer is of such a class: by its name, else by the model's family. */
function isOfBertClass(tokenizer: Members, model: Members): boolean {
  const name = tokenizer['tokenizer_class'];
  const family = typeof name === 'string' ? name.replace(/Tokenizer(?:Fast)?$/u, '') : model['model_type'];
  return typeof family === 'string' && bertClasses.has(family.toLowerCase());
}

/** Their settings; the class has its own value for what the file does not say. */
const bertSettingsOf = (tokenizer: Members): BertSettings => ({
  lowercase: tokenizer['do_lower_case'] !== false,
  stripAccents: typeof tokenizer['strip_accents'] === 'boolean' ? tokenizer['strip_accents'] : null,
  handleChineseChars: tokenizer['tokenize_chinese_chars'] !== false,
});

function specialIdsOf(tokenizer: Members): ReadonlySet<number> {
  const added = isMembers(tokenizer['added_tokens_decoder']) ? tokenizer['added_tokens_decoder'] : {};
  const special = Object.entries(added).filter(([, token]) => isMembers(token) && token['special'] === true);
  return new Set(special.map(([id]) => Number(id)));
}

/** How far into the definition its own truncation stands: before everything that can be long. @unit characters */
const truncationReachCharacters = 1_024;

/** Whether the definition itself keeps the end of texts; only asked where the settings do not say. */
async function definitionKeepsEnd(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, tokenizerFileName), 'utf8').catch(() => '');
  const start = text.slice(0, truncationReachCharacters);
  return /"truncation"\s*:\s*\{[^}]*"direction"\s*:\s*"Left"/u.test(start);
}

/**
 * What the files of a model's folder say of its tokenizer besides `tokenizer.json`.
 * @throws ConfigurationError where one of them is not JSON
 * @source transformers, `BertTokenizerFast`, `truncation_side`, `model_input_names`; sentence-transformers, `Transformer`
 */
export async function readTokenizerSettings(folder: string): Promise<TokenizerSettings> {
  const files = ['tokenizer_config.json', 'sentence_bert_config.json', 'config.json'];
  const [tokenizer = {}, sentence = {}, model = {}] = await Promise.all(
    files.map((name) => readMembers(join(folder, name))),
  );
  const side = tokenizer['truncation_side'];
  const keepsEnd = typeof side === 'string' ? side === 'left' : await definitionKeepsEnd(folder);
  const inputs = tokenizer['model_input_names'];
  return {
    lowercasesTexts: sentence['do_lower_case'] === true,
    keptSide: keepsEnd ? 'end' : 'start',
    hasTypeIds: !Array.isArray(inputs) || inputs.includes('token_type_ids'),
    bert: isOfBertClass(tokenizer, model) ? bertSettingsOf(tokenizer) : null,
    specialIds: specialIdsOf(tokenizer),
  };
}
