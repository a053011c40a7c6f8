/** Owns the text of answers: a result or an error under a raw id. */
import { errorCatalogue, type ServiceError } from '../errors.ts';

/** A success answer around result bytes. */
export function encodeSuccess(rawId: string, result: Buffer): Buffer {
  const head = `{"jsonrpc":"2.0","id":${rawId},"result":`;
  const headBytes = Buffer.byteLength(head);
  const answer = Buffer.allocUnsafe(headBytes + result.length + 1);
  answer.write(head);
  result.copy(answer, headBytes);
  answer.write('}', headBytes + result.length);
  return answer;
}

/** An error answer; `data` says whether the same call may succeed later, and what was wrong. */
export function encodeError(rawId: string, error: ServiceError): Buffer {
  const { code, retryable } = errorCatalogue[error.errorName];
  // Undefined members vanish in JSON.stringify.
  const body = { code, message: error.message, data: { ...error.data, retryable } };
  return Buffer.from(`{"jsonrpc":"2.0","id":${rawId},"error":${JSON.stringify(body)}}`);
}
