/** Owns the collecting of configuration problems, so that one start names all of them. */
import { ConfigurationError } from '../errors.ts';

/**
 * What every step gave, in order; all steps run to their end first.
 * @throws ConfigurationError with the problems of all steps
 */
export async function gather<Result>(steps: readonly Promise<Result>[]): Promise<Result[]> {
  const outcomes = await Promise.allSettled(steps);
  const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));
  const bug = failures.find((failure) => !(failure instanceof ConfigurationError));
  if (bug !== undefined) throw bug instanceof Error ? bug : new Error('a step failed', { cause: bug });
  if (failures.length > 0) {
    const problems = failures.flatMap((failure) => (failure as ConfigurationError).problems);
    throw new ConfigurationError([...new Set(problems)]);
  }
  return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
}

/** Ends with all problems that were found, if there are any. */
export function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new ConfigurationError(problems);
}
