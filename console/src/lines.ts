/** Owns the small conversions between what people type and read, and what is sent and comes back. */

/** Lines that are not empty, without the spaces around them. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

const sizes = ['B', 'KB', 'MB', 'GB', 'TB'];
/** Such as `1.5 MB`, in powers of 1000. */
export function bytesText(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(sizes.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** power;
  return `${value >= 100 || power === 0 ? value.toFixed(0) : value.toFixed(1)} ${sizes[power] ?? ''}`;
}

/** A number in as many digits as say something. */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  if (size >= 10_000) return `${(value / 1000).toFixed(size >= 100_000 ? 0 : 1)}k`;
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** The next number of the form 1, 2 or 5 times a power of ten. */
export function niceCeiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}

/** A label for each row by its position. */
export const rowNumbers = (rows: number): string[] => Array.from({ length: rows }, (_, index) => `row ${index + 1}`);
