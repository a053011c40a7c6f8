/** Owns how an error reads to the clients of Cohere and Jina: its status, its headers and its message. */
import type { OutgoingHttpHeaders } from 'node:http';
import type { ErrorName, ServiceError } from '../../errors.ts';

const statusOf: Readonly<Record<ErrorName, number>> = {
  parse: 400,
  invalidRequest: 400,
  invalidParams: 400,
  unsupportedOption: 400,
  versionMismatch: 400,
  unauthorized: 401,
  capabilityNotAdvertised: 404,
  methodNotFound: 404,
  tooLarge: 413,
  overloaded: 429,
  cancelled: 499,
  internal: 500,
  notInitialized: 503,
  unavailable: 503,
  deadlineExceeded: 504,
};

/** When to come back, where the error does not say. @unit ms */
const usualRetryAfterMs = 1000;
/** Longest part of a refused value that an answer repeats. @unit characters */
const maxRepeatedValue = 64;

/** The status of an error; 404 where it is the model that is not served. */
export function serviceStatus({ errorName, data }: ServiceError): number {
  return errorName === 'unsupportedOption' && data.field === 'model' ? 404 : statusOf[errorName];
}

/** `Retry-After` in whole seconds where the same call may succeed later, and the challenge of a 401. */
export function serviceHeaders(error: ServiceError): OutgoingHttpHeaders {
  const status = serviceStatus(error);
  if (status === 401) return { 'WWW-Authenticate': 'Bearer' };
  if (status !== 429 && status !== 503) return {};
  const seconds = Math.ceil((error.data.retryAfterMs ?? usualRetryAfterMs) / 1000);
  return { 'Retry-After': String(Math.max(1, seconds)) };
}

/** The message, with the value of an option that is not supported: these services' errors have no member for it. */
export function serviceMessage({ message, data }: ServiceError): string {
  return data.option === undefined
    ? message
    : `${message} (received ${JSON.stringify(data.option.slice(0, maxRepeatedValue))})`;
}
