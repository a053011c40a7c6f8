/** Owns the check that a result holds real numbers only. */

/** True when no value is NaN or infinite. */
export function allFinite(values: Float32Array): boolean {
  for (const value of values) {
    // One comparison rejects NaN and both infinities.
    if (!(value - value === 0)) return false;
  }
  return true;
}
