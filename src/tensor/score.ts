/** Owns turning raw relevance into scores and an order. */

/** 1 / (1 + e^-x), in double precision. */
export const sigmoid = (logit: number): number => 1 / (1 + Math.exp(-logit));

/** Indices of the values, greatest first; equal values keep their order. */
export function orderByValue(values: ArrayLike<number>): number[] {
  return Array.from({ length: values.length }, (_, index) => index).sort(
    (a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b,
  );
}
