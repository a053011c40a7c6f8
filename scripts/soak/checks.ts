/** Owns what a soak found: measures with their bounds, and the table of them. */
import { formatTable } from '../../src/bench/table.ts';

/** One rule and whether it held. */
export interface Check {
  readonly rule: string;
  readonly found: string;
  /** null where this machine does not allow the check; `found` says why. */
  readonly isMet: boolean | null;
}

/** A rule with a greatest value. */
export const atMost = (rule: string, value: number, bound: number, unit: string): Check => ({
  rule: `${rule} <= ${bound} ${unit}`.trim(),
  found: `${value.toFixed(2)} ${unit}`.trim(),
  isMet: value <= bound,
});

/** A rule with a least value. */
export const atLeast = (rule: string, value: number, bound: number): Check => ({
  rule: `${rule} >= ${bound}`,
  found: value.toFixed(3),
  isMet: value >= bound,
});

/** A rule that nothing may break: the first of what did is shown. */
export const none = (rule: string, faults: readonly string[]): Check => ({
  rule,
  found: faults.length === 0 ? 'none' : `${faults.length}: ${(faults[0] ?? '').slice(0, 100)}`,
  isMet: faults.length === 0,
});

/** Every check in a line. */
export const formatChecks = (checks: readonly Check[]): string =>
  formatTable(
    ['verdict', 'rule', 'found'],
    checks.map(({ isMet, rule, found }) => [isMet === null ? 'left out' : isMet ? 'met' : 'MISSED', rule, found]),
  );
