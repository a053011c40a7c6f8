/** Owns the rows about values: served ones against the stored golden ones, and against a server on the CPU. */
import type { Served } from '../../test/support/served.ts';
import type { TimeBudget } from './budget.ts';
import type { Finding } from './rows.ts';
import { askValues, likenessOf, type Value, type ValueKind } from './values.ts';

/** Values that others are compared with, by the name of their kind. */
export type ReferenceValues = ReadonlyMap<ValueKind['name'], readonly Value[]>;

/** A precision as far as values differ by it. */
type ValuePrecision = 'int8' | 'fp16' | 'fp32';

/**
 * Least cosine of any vector to the golden ones. What int8 has of edge cases (single words, strings of digits) is below
 * its ordinary texts; tests hold those to more.
 */
const leastCosines: Readonly<Record<ValuePrecision, number>> = { int8: 0.93, fp16: 0.9995, fp32: 0.9999 };

/** Largest difference of a score, which sums over the rows of a query. */
const mostScoreDifferences: Readonly<Record<ValuePrecision, number>> = { int8: 0.25, fp16: 0.02, fp32: 0.002 };

/** The coarsest precision in a label such as `fp16+int8`. */
export const precisionIn = (label: string): ValuePrecision =>
  label.includes('int8') ? 'int8' : label.includes('fp16') ? 'fp16' : 'fp32';

/** Asks for the golden texts of a kind, as far as the time goes, and compares. */
export async function checkValues(
  served: Served,
  kind: ValueKind,
  precision: ValuePrecision,
  reference: ReferenceValues,
  budget: TimeBudget,
): Promise<Finding> {
  const values = await askValues(served, kind, budget);
  const golden = likenessOf(
    values,
    kind.questions.map(({ expected }) => expected),
  );
  const cpu = likenessOf(values, reference.get(kind.name) ?? []);
  const isGood =
    golden.count > 0 &&
    (kind.name === 'rerank'
      ? golden.maxDifference <= mostScoreDifferences[precision]
      : golden.minCosine >= leastCosines[precision]);
  const beside =
    cpu.count === 0
      ? ''
      : `; to the CPU in fp32: cosine >= ${cpu.minCosine.toFixed(6)}, difference <= ${cpu.maxDifference.toExponential(1)}`;
  return {
    isGood,
    value: kind.name === 'rerank' ? `<= ${golden.maxDifference.toExponential(1)}` : `>= ${golden.minCosine.toFixed(6)}`,
    detail: `${golden.count} of ${kind.questions.length} golden texts, ${kind.name === 'rerank' ? 'difference' : 'cosine'}${beside}`,
    facts: { precision, golden, cpu },
    made: null,
  };
}

/** The values of every kind, as far as the time goes. */
export async function collectValues(
  served: Served,
  kinds: readonly ValueKind[],
  budget: TimeBudget,
): Promise<ReferenceValues> {
  const values = new Map<ValueKind['name'], readonly Value[]>();
  for (const kind of kinds) values.set(kind.name, await askValues(served, kind, budget));
  return values;
}
