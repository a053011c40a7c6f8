/** Owns telling a caller of a member under the name by which it was sent. */
import { ServiceError } from '../../errors.ts';

/** The error with another name for its field, in the message too; any other error as it is. */
export function withFieldNamed(error: unknown, from: string, to: string): unknown {
  if (!(error instanceof ServiceError) || error.data.field !== from) return error;
  const { errorName, message, data, cause } = error;
  const said = message.startsWith(from) ? `${to}${message.slice(from.length)}` : message;
  return new ServiceError(errorName, said, { ...data, field: to }, cause);
}
