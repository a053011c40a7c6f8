/** Owns reading JSON from outside: bounded before it is parsed. */
import type { ErrorName } from '../errors.ts';
import type { ScanLimits } from './json-scanner.ts';
import { scanFrame, type FrameScan } from './raw-tokens.ts';

/**
 * Bounds of one frame: V8 parses such nesting in about 20 ms and needs seconds for a hundred times more; the largest
 * batch of text blocks has two thirds of these values and names.
 */
export const frameLimits: ScanLimits = { depth: 100_000, values: 600_000, names: 400_000, literal: 4096 };

const excesses: Readonly<Record<keyof ScanLimits, { errorName: ErrorName; what: string }>> = {
  depth: { errorName: 'parse', what: 'is nested deeper than' },
  values: { errorName: 'tooLarge', what: 'holds more values than' },
  names: { errorName: 'tooLarge', what: 'holds more member names than' },
  literal: { errorName: 'tooLarge', what: 'holds a number with more characters than' },
};

/** A value, with the scan of its text as a frame, or why there is none. */
export type ReadJson =
  { readonly value: unknown; readonly scan: FrameScan } | { readonly errorName: ErrorName; readonly message: string };

/** Reads one JSON text; never throws, whatever the text. */
export function readJson(text: string): ReadJson {
  const scan = scanFrame(text, frameLimits);
  if (scan.excess !== null) {
    const { errorName, what } = excesses[scan.excess];
    return { errorName, message: `The JSON ${what} ${frameLimits[scan.excess]}` };
  }
  try {
    return { value: JSON.parse(text), scan };
  } catch {
    return { errorName: 'parse', message: 'The text is not valid JSON' };
  }
}
