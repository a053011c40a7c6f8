/** Owns judging one answer of a soak. */
import { errorCatalogue } from '../../src/errors.ts';
import { answerProblems } from '../fuzz/oracle.ts';

const retryableCodes: ReadonlySet<number> = new Set(
  Object.values(errorCatalogue)
    .filter(({ retryable }) => retryable)
    .map(({ code }) => code),
);

/** True for an error after which the same call may succeed. */
export const isRetryable = (code: number): boolean => retryableCodes.has(code);

/** The code of an error, null for a result, and what is wrong with the answer to the call with this id. */
export function judgeAnswer(body: string, id: string): { problems: string[]; code: number | null } {
  let answer: { readonly id?: unknown; readonly error?: { readonly code?: unknown } };
  try {
    answer = JSON.parse(body) as typeof answer;
  } catch {
    return { problems: [`no JSON: ${body.slice(0, 80)}`], code: null };
  }
  const problems = answerProblems(answer);
  if (answer.id !== id) problems.push(`it came under ${JSON.stringify(answer.id)}`);
  return { problems, code: typeof answer.error?.code === 'number' ? answer.error.code : null };
}
