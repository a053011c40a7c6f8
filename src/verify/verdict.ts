/** Owns the judgement whether a head gives what transformers.js gives. */
import type { RunRow } from '../executor/protocol.ts';
import type { GraphHead } from '../model/head-source.ts';
import type { ModelManifest, Precision } from '../model/manifest.ts';
import { compareRows } from './likeness.ts';
import type { Likeness } from './likeness.ts';

/** How far values may be from those of the graph file. */
export interface Tolerance {
  readonly minCosine: number;
  /** Largest difference of a logit. */
  readonly maxDifference: number;
}

/** How much of two sparse vectors is the same. */
export interface TermCounts {
  /** Terms that both have, of all texts together. */
  readonly shared: number;
  /** Terms that only one of them has. */
  readonly differing: number;
}

/** What was found about one head. */
export interface HeadReport {
  readonly head: GraphHead;
  readonly verdict: 'agrees' | 'differs' | 'notCompared';
  /** Why it differs or could not be compared; null where it agrees. */
  readonly reason: string | null;
  /** Texts, or pairs of a query and a passage, that were tokenised. */
  readonly texts: number;
  /** Those of them for which transformers.js has the same ids; the values of these are compared. */
  readonly sameIds: number;
  readonly likeness: Likeness | null;
  readonly tolerance: Tolerance | null;
  /** null for all but sparse vectors. */
  readonly terms: TermCounts | null;
}

/** Tolerances by what is served: the file as it is, or converted to that precision. */
const tolerances = {
  fp32: { minCosine: 0.99999, maxDifference: 1e-3 },
  fp16: { minCosine: 0.9995, maxDifference: 3e-2 },
  // One file, one engine: only the rounding before each product may differ.
  int8: { minCosine: 0.999, maxDifference: 5e-2 },
  // Against the float32 file that the weights were quantised from.
  quantized: { minCosine: 0.98, maxDifference: 0.5 },
} as const satisfies Record<Precision | 'quantized', Tolerance>;

/** The tolerance for a model as it is served. */
export function toleranceOf({
  precision,
  conversion = [],
}: Pick<ModelManifest, 'precision' | 'conversion'>): Tolerance {
  if (conversion.includes('quantize')) return tolerances.quantized;
  return conversion.includes('widen') ? tolerances.fp16 : tolerances[precision];
}

/** What one text gave. */
export interface ComparedRows {
  readonly served: RunRow;
  /** By transformers.js. */
  readonly expected: RunRow;
}

/** What is known of a head when it is judged. */
export interface Findings {
  readonly head: GraphHead;
  readonly texts: number;
  /** One for each text with the same ids. */
  readonly pairs: readonly ComparedRows[];
  readonly tolerance: Tolerance;
}

/** Terms of the sparse rows, counted. */
export function countTerms(pairs: readonly ComparedRows[]): TermCounts {
  let shared = 0;
  let differing = 0;
  for (const { served, expected } of pairs) {
    const terms = Array.from(served.indices ?? []);
    const others = new Set(expected.indices ?? []);
    const both = terms.filter((term) => others.has(term)).length;
    shared += both;
    differing += terms.length + others.size - 2 * both;
  }
  return { shared, differing };
}

function reasonOf({ measure, worst }: Likeness, { minCosine, maxDifference }: Tolerance): string | null {
  // NaN is within no tolerance.
  if (measure === 'difference') {
    if (worst <= maxDifference) return null;
    return `a logit is off by ${worst.toFixed(6)}, the most is ${String(maxDifference)}`;
  }
  return worst >= minCosine ? null : `a text has a cosine of ${worst.toFixed(6)}, the least is ${String(minCosine)}`;
}

/** The report on a head that transformers.js cannot run. */
export const notCompared = (
  head: GraphHead,
  counts: Pick<HeadReport, 'texts' | 'sameIds'>,
  reason: string,
): HeadReport => ({ head, verdict: 'notCompared', reason, ...counts, likeness: null, tolerance: null, terms: null });

/** Whether a head agrees with transformers.js. */
export function judge({ head, texts, pairs, tolerance }: Findings): HeadReport {
  const counts = { texts, sameIds: pairs.length };
  if (texts === 0) return notCompared(head, counts, 'the limit of tokens is too short for every sample text');
  const known = { head, ...counts, tolerance };
  if (pairs.length === 0) {
    const reason = 'transformers.js has other token ids for every text';
    return { ...known, verdict: 'differs', reason, likeness: null, terms: null };
  }
  const [served, expected] = [pairs.map((pair) => pair.served), pairs.map((pair) => pair.expected)];
  const likeness = compareRows(served, expected, head);
  const reason = reasonOf(likeness, tolerance);
  const terms = head === 'sparse' ? countTerms(pairs) : null;
  return { ...known, verdict: reason === null ? 'agrees' : 'differs', reason, likeness, terms };
}
