/** Owns how the values of settings may be written: as JSON has them, and as the texts of flags and variables. */
import { z } from 'zod';
import { parseWanted } from '../device/wanted.ts';

/** Texts that are numbers count as such; nothing else is turned into one, lest null or true become a port. */
export const count = (min: number, max: number) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value),
    z
      .number({ error: 'must be a number' })
      .int('must be a whole number')
      .min(min, `must be at least ${min}`)
      .max(max, `must be at most ${max}`),
  );
/** A text that is not empty. */
export const text = () => z.string({ error: 'must be a text' }).min(1, 'must not be empty');
/** A truth value, also as a text. */
export const flag = () =>
  z.preprocess(
    (value) => (value === 'true' || value === '1' ? true : value === 'false' || value === '0' ? false : value),
    z.boolean({ error: 'must be true or false' }),
  );
/** The parts of a text that holds commas; of each text of a list, since a flag may be repeated. */
function partsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.flatMap(partsOf);
  return typeof value === 'string' ? value.split(',').map((part) => part.trim()) : value;
}

const listError = { error: 'must be a list, or texts separated by commas' };
/** Texts of one form, also as one text with commas. */
export const list = (pattern: RegExp, what: string) =>
  z.preprocess(
    partsOf,
    z.array(z.string({ error: 'must be a text' }).regex(pattern, `each must be ${what}`), listError),
  );
/** The word for an empty list, which no variable could say otherwise. */
const noModels = 'none';
/** Names of models; the word for none stands alone. */
export const models = () =>
  z.preprocess(
    (value) => {
      const parts = partsOf(value);
      return Array.isArray(parts) && parts.length === 1 && parts[0] === noModels ? [] : parts;
    },
    z.array(
      text().refine((name) => name !== noModels, 'none stands alone'),
      listError,
    ),
  );

/** Devices by the grammar of `--device`; whether they exist shows at the start. */
export const devices = () =>
  z.preprocess(
    partsOf,
    z.array(z.string({ error: 'must be a text' }), listError).superRefine((texts, context) => {
      const parsed = parseWanted(texts);
      if ('problem' in parsed) context.addIssue({ code: 'custom', message: parsed.problem });
    }),
  );

/** The kernel's structure for an address ends here, its last byte zero. @unit bytes */
const maxSocketPathBytes = process.platform === 'linux' ? 107 : 103;
/** A path that a Unix socket can have. */
export const socketPath = () =>
  text()
    .refine((path) => !path.includes('\0'), 'must not hold a zero byte')
    .refine(
      (path) => Buffer.byteLength(path) <= maxSocketPathBytes,
      `must be at most ${maxSocketPathBytes} bytes: no socket can have a longer path`,
    );
const octalError = { error: 'must be three octal digits, such as 660' };
/** A file mode. */
export const fileMode = () => z.string(octalError).regex(/^[0-7]{3}$/, octalError);

/** Keys of callers, at least one. */
export const keys = () =>
  list(/^\S(?:.*\S)?$/, 'a key that is not empty').pipe(z.array(z.string()).min(1, 'must name at least one key'));

/** An origin that a browser could send. */
export const originPattern = /^https?:\/\/[^\s/?#@,]+$/;
/** A name without scheme and port. */
export const hostPattern = /^(\[[\da-fA-F:.]+\]|[\w.-]+)$/;
