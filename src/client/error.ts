/** Owns the errors that calls reject with. */

const names = {
  [-32700]: 'parse',
  [-32600]: 'invalidRequest',
  [-32602]: 'invalidParams',
  [-32603]: 'internal',
  [-32001]: 'notInitialized',
  [-32002]: 'versionMismatch',
  [-32003]: 'capabilityNotAdvertised',
  [-32004]: 'methodNotFound',
  [-32005]: 'unsupportedOption',
  [-32006]: 'cancelled',
  [-32010]: 'unavailable',
  [-32011]: 'overloaded',
  [-32012]: 'unauthorized',
  [-32013]: 'tooLarge',
  [-32014]: 'deadlineExceeded',
} as const;

type KnownCode = keyof typeof names;

/** What a code means; `unknown` for codes that RCP/1 does not define. */
export type RcpErrorName = (typeof names)[KnownCode] | 'unknown';

/** Members of an error's `data`; servers may add others. */
export interface RcpErrorData {
  /** Path of the member that is wrong, such as `inputs[2]`: its index counts in the list that was given to the client. */
  readonly field?: string;
  /** The value that is not supported. */
  readonly option?: string;
  readonly supported?: readonly string[];
  readonly limit?: number;
  readonly received?: number;
  readonly tokens?: number;
  /** @unit ms */
  readonly retryAfterMs?: number;
  /** HTTP status of an answer that is none of RCP's. */
  readonly status?: number;
  readonly [member: string]: unknown;
}

/** How an error came about. */
export interface RcpErrorOptions {
  readonly data?: RcpErrorData;
  /** Whether the same call may succeed later; without it, what RCP/1 says of the code. */
  readonly retryable?: boolean;
  /** False where the client refused the call itself. */
  readonly wasSent?: boolean;
  readonly cause?: unknown;
}

const retryableCodes: ReadonlySet<number> = new Set([-32001, -32010, -32011, -32014]);

/** A call that the server, or the client in its place, refused or could not finish. */
export class RcpError extends Error {
  override readonly name = 'RcpError';
  /** JSON-RPC code, as RCP/1 section 12 defines it. */
  readonly code: number;
  /** The code in words. */
  readonly errorName: RcpErrorName;
  readonly data: RcpErrorData;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** False where the client refused the call before anything was sent. */
  readonly wasSent: boolean;

  constructor(code: number, message: string, options: RcpErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.errorName = Object.hasOwn(names, code) ? names[code as KnownCode] : 'unknown';
    this.data = options.data ?? {};
    this.retryable = options.retryable ?? retryableCodes.has(code);
    this.wasSent = options.wasSent ?? true;
  }
}

const codes: ReadonlyMap<string, number> = new Map(Object.entries(names).map(([code, name]) => [name, Number(code)]));

/** An error of this name. */
export function errorOf(name: Exclude<RcpErrorName, 'unknown'>, message: string, options?: RcpErrorOptions): RcpError {
  return new RcpError(codes.get(name) ?? 0, message, options);
}

/** An error for what the client refuses itself, with the code that the server would have answered. */
export function refusal(name: Exclude<RcpErrorName, 'unknown'>, message: string, data: RcpErrorData): RcpError {
  return errorOf(name, message, { data, retryable: false, wasSent: false });
}

/** The reason of an aborted signal as an error: its own where it is one, else an `AbortError` that has it as its cause. */
export function abortErrorOf(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error) return reason;
  // What a browser calls a DOMException was no Error in every engine.
  if (typeof reason === 'object' && reason !== null && 'name' in reason) return reason as Error;
  return Object.assign(new DOMException('The call was aborted', 'AbortError'), { cause: reason });
}
