/** Owns the MaxSim score in plain TypeScript. */

/**
 * The sum over the query's rows of the largest dot product with a row of the passage.
 * @shape f32 [queryRows, dimension], f32 [passageRows, dimension] -> f32
 */
export function maxSimReference(
  queryRows: readonly (readonly number[])[],
  passageRows: readonly (readonly number[])[],
): number {
  let sum = 0;
  for (const query of queryRows) {
    const products = passageRows.map((passage) =>
      query.reduce((total, value, column) => total + value * (passage[column] ?? 0), 0),
    );
    sum += Math.max(...products);
  }
  return sum;
}
