/** Owns what a test needs from the machine: it is skipped with the reason, unless the run demands that it is there. */

/** Whether tests that need a thing run, and the title that says why not. */
export interface Requirement {
  readonly skip: boolean;
  /** The test's title, with the reason appended where it is skipped. */
  title(rule: string): string;
}

/**
 * The verdict on one need; names in `TRIVEC_TEST_REQUIRE` (comma separated) may not be missing.
 * @throws Error where the need is demanded and missing: the whole test file fails with the reason
 */
export function requirement(
  name: string,
  isAvailable: boolean,
  why: string,
  demanded: string = process.env['TRIVEC_TEST_REQUIRE'] ?? '',
): Requirement {
  const isDemanded = demanded
    .split(',')
    .map((part) => part.trim())
    .includes(name);
  if (isDemanded && !isAvailable) throw new Error(`TRIVEC_TEST_REQUIRE demands ${name}: ${why}`);
  return { skip: !isAvailable, title: (rule) => (isAvailable ? rule : `${rule} [skipped: ${why}]`) };
}
