/** Owns the error catalogue: every error a caller can see, its code, and the one class that carries it. */

/** What a catalogue entry says about an error. */
export interface ErrorEntry {
  /** JSON-RPC code, as RCP/1 section 12 defines it. */
  readonly code: number;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** One sentence for the README: when it is answered. */
  readonly when: string;
}

const entry = (code: number, retryable: boolean, when: string): ErrorEntry => ({ code, retryable, when });

/** Every error that leaves the process. Nothing else is ever answered. */
export const errorCatalogue = {
  parse: entry(-32700, false, 'The text is not UTF-8 or not JSON.'),
  invalidRequest: entry(-32600, false, 'The frame is not a usable request, or is used in the wrong place.'),
  invalidParams: entry(
    -32602,
    false,
    'A field is missing, of the wrong type, out of range, or over an advertised limit.',
  ),
  internal: entry(-32603, false, 'The server failed; the details are in its log.'),
  notInitialized: entry(-32001, true, 'The session has not been initialized (stdio and `--http-session single`).'),
  versionMismatch: entry(-32002, false, 'The protocol version asked for is below 1.'),
  capabilityNotAdvertised: entry(-32003, false, 'RCP/1 defines the method, this server does not offer it.'),
  methodNotFound: entry(-32004, false, 'RCP/1 does not define the method.'),
  unsupportedOption: entry(-32005, false, 'The value of an option is not one that `info` advertises.'),
  cancelled: entry(-32006, false, 'The call was cancelled.'),
  unavailable: entry(-32010, true, 'No device can serve the call now.'),
  overloaded: entry(
    -32011,
    true,
    'The queue is full, or a limit of the key is reached; try again after `retryAfterMs`.',
  ),
  unauthorized: entry(-32012, false, 'The bearer key is missing or wrong.'),
  tooLarge: entry(-32013, false, 'A body, a line or an answer is over a size limit.'),
  deadlineExceeded: entry(-32014, true, 'The deadline passed before the answer was there.'),
} as const satisfies Record<string, ErrorEntry>;

/** Name of a catalogue entry. */
export type ErrorName = keyof typeof errorCatalogue;

/** Members of `error.data`; undefined ones are left out of the answer. */
export interface ErrorData {
  /** Path of the offending member, such as `inputs[2]`. */
  readonly field?: string | undefined;
  /** The unsupported value itself. */
  readonly option?: string | undefined;
  readonly supported?: readonly string[] | undefined;
  readonly limit?: number | undefined;
  readonly received?: number | undefined;
  readonly tokens?: number | undefined;
  readonly tokensIsMinimum?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly detail?: string | undefined;
}

/** The one error class: a catalogue name, a message for the caller, and its data. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly errorName: ErrorName;
  readonly data: ErrorData;

  constructor(errorName: ErrorName, message: string, data: ErrorData = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.errorName = errorName;
    this.data = data;
  }
}

/** A `-32602` that names the field. */
export const invalidField = (field: string, message: string, data: ErrorData = {}): ServiceError =>
  new ServiceError('invalidParams', `${field}: ${message}`, { ...data, field });

/** A fault in what the operator configured: ends the start with exit code 2. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}
