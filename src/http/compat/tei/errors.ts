/** Owns how an error reads to text-embeddings-inference's clients. */
import type { ErrorName, ServiceError } from '../../../errors.ts';
import type { Answer } from '../../answer.ts';
import { serviceHeaders, serviceMessage } from '../service-status.ts';

/** What that service calls its errors, and one that it answers without a body. */
type ErrorType = 'Unhealthy' | 'Backend' | 'Overloaded' | 'Validation' | 'Tokenizer' | 'Empty' | 'Unauthorized';

interface Verdict {
  readonly status: number;
  readonly errorType: ErrorType;
}

const validation: Verdict = { status: 422, errorType: 'Validation' };
const unhealthy: Verdict = { status: 503, errorType: 'Unhealthy' };
/** A model that is not served, and one whose run failed, are one thing there. */
const backend: Verdict = { status: 424, errorType: 'Backend' };

const verdicts: Readonly<Record<ErrorName, Verdict>> = {
  parse: { status: 400, errorType: 'Validation' },
  invalidRequest: { status: 400, errorType: 'Validation' },
  invalidParams: validation,
  unsupportedOption: validation,
  versionMismatch: validation,
  capabilityNotAdvertised: backend,
  internal: backend,
  unauthorized: { status: 401, errorType: 'Unauthorized' },
  methodNotFound: { status: 404, errorType: 'Validation' },
  tooLarge: { status: 413, errorType: 'Validation' },
  overloaded: { status: 429, errorType: 'Overloaded' },
  cancelled: { status: 499, errorType: 'Backend' },
  notInitialized: unhealthy,
  unavailable: unhealthy,
  deadlineExceeded: { status: 504, errorType: 'Backend' },
};

const sizeError: Verdict = { status: 413, errorType: 'Validation' };
const emptyError: Verdict = { status: 400, errorType: 'Empty' };
const tokenizerError: Verdict = { status: 422, errorType: 'Tokenizer' };

/**
 * Sizes are told apart from other faults of a request, as that service documents them: nothing at all is 400, too
 * many texts or tokens 413. A number over the limit in one element is no size but a token id that the model does not
 * have.
 * @source text-embeddings-inference, OpenAPI description of its routes
 */
function verdictOf({ errorName, data }: ServiceError): Verdict {
  if (errorName !== 'invalidParams') return verdicts[errorName];
  const { limit, received, tokens, field = '' } = data;
  if (received === 0) return emptyError;
  if (tokens !== undefined) return sizeError;
  if (limit === undefined || received === undefined || received <= limit) return validation;
  if (!field.endsWith(']')) return sizeError;
  return field.startsWith('ids') ? tokenizerError : validation;
}

/** `{error, error_type}` with that service's status, and `Retry-After` where it helps to come back. */
export function errorAnswer(error: ServiceError): Answer {
  const { status, errorType } = verdictOf(error);
  return {
    status,
    headers: serviceHeaders(error),
    body: JSON.stringify({ error: serviceMessage(error), error_type: errorType }),
  };
}
