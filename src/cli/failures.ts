/** Owns telling what went wrong with a command: in a line for whoever can act on it, with a stack where it is a bug. */
import { BulkFailure } from '../bulk/row.ts';
import { RcpError } from '../client/index.ts';
import { ConfigurationError, ServiceError } from '../errors.ts';

/** Errors that say: what was asked for is not to be had, whoever is asked again. */
const refusals: ReadonlySet<string> = new Set([
  'invalidParams',
  'unsupportedOption',
  'capabilityNotAdvertised',
  'unauthorized',
]);

/** Members that hold the input; all others come from flags. */
const inputField = /^(?:inputs|texts|passages|documents)\b/u;

/**
 * Runs a command. What the flags are wrong about is thrown as a ConfigurationError; any other failure that a person can
 * act on is told in a line, with exit code 1.
 * @throws ConfigurationError; whatever is a bug
 */
export async function telling(command: () => Promise<void>): Promise<void> {
  try {
    await command();
  } catch (error) {
    const failure = asFlagProblem(error);
    if (!isTold(failure)) throw failure;
    process.stderr.write(`trivec: ${failure.message}\n`);
    process.exitCode = 1;
  }
}

/** An error as the problem of the flags that it is, or as it was. */
export function asFlagProblem(error: unknown): unknown {
  if (!(error instanceof RcpError) && !(error instanceof ServiceError)) return error;
  const isOfFlags = refusals.has(error.errorName) && !inputField.test(error.data.field ?? '');
  return isOfFlags ? new ConfigurationError([error.message]) : error;
}

const isTold = (error: unknown): error is Error =>
  error instanceof BulkFailure || error instanceof RcpError || error instanceof ServiceError || isOfSystem(error);

/** Whether the system refused something, such as a full disk: no stack tells a person more than the message does. */
const isOfSystem = (error: unknown): error is Error => error instanceof Error && 'syscall' in error && 'code' in error;
