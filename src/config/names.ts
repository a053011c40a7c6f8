/** Owns the spellings of a setting: key, flag and environment variable follow from each other. */

const words = (key: string) => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** `maxBatchTokens` -> `--max-batch-tokens`. */
export const flagOf = (key: string): string => `--${words(key)}`;

/** `maxBatchTokens` -> `TRIVEC_MAX_BATCH_TOKENS`. */
export const variableOf = (key: string): string => `TRIVEC_${words(key).replaceAll('-', '_').toUpperCase()}`;
