/** Owns one call on a list: its parts run side by side within the gate, each repeated or halved, and one failure ends all. */
import { requireDeadline } from './bounds.ts';
import type { Environment } from './clock.ts';
import { abortErrorOf, errorOf, RcpError } from './error.ts';
import type { Gate } from './gate.ts';
import type { CallOptions, Progress } from './options.ts';
import { createProgressCount } from './progress.ts';
import type { PartAnswer } from './results.ts';
import { deadlineError, withRetries, type RetryPolicy } from './retry.ts';
import { openScope, type Scope } from './scope.ts';
import { halve, type Part } from './split.ts';
import type { Request, Result, Transport } from './transport.ts';

/** What every call of a client works with. */
export interface Caller {
  readonly transport: Transport;
  readonly gate: Gate;
  readonly policy: RetryPolicy;
  readonly answerTimeoutMs: number;
  readonly environment: Environment;
}

/** A call whose list has been cut into parts. */
export interface ListCall {
  readonly method: string;
  readonly parts: readonly Part[];
  /** Params of the request for one part. */
  readonly paramsOf: (part: Part) => Record<string, unknown>;
  readonly options: CallOptions & { readonly onProgress?: (progress: Progress) => void };
  /** Whether the server tells how far a request is. */
  readonly isStreaming: boolean;
}

/** Answers in the order of the list. */
export interface ListAnswer {
  readonly answers: readonly PartAnswer[];
  /** @unit ms */
  readonly latencyMs: number;
  readonly retries: number;
}

/**
 * Opens what bounds a call: its caller's signal and deadline.
 * @throws invalidParams
 */
export function openCall({ environment }: Caller, options: CallOptions): Scope {
  requireDeadline(options);
  const { signal, deadlineMs } = options;
  const limit = deadlineMs === undefined ? null : { ms: deadlineMs, error: deadlineError };
  return openScope(signal, limit, environment.clock);
}

/**
 * One attempt of a request, which counts as lost when no answer comes.
 * @throws RcpError; the scope's reason
 */
export const sendOnce = (caller: Caller, request: Request, call: Scope): Promise<Result> =>
  attemptOnce(caller, call, (signal) => caller.transport.send(request, signal));

/**
 * One attempt of reading `info`.
 * @throws RcpError; the scope's reason
 */
export const openOnce = (caller: Caller, call: Scope): Promise<Result> =>
  attemptOnce(caller, call, (signal) => caller.transport.open(signal));

async function attemptOnce(
  caller: Caller,
  call: Scope,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { transport, answerTimeoutMs, environment } = caller;
  const error = () => errorOf('unavailable', `${transport.address}: no answer within ${answerTimeoutMs} ms`);
  const attempt = openScope(call.signal, { ms: answerTimeoutMs, error }, environment.clock);
  try {
    return await work(attempt.signal);
  } finally {
    attempt.close();
  }
}

/**
 * Runs all parts of a call.
 * @throws RcpError of the first part that fails, with `field` in terms of the whole list; the signal's reason
 */
export async function runList(caller: Caller, call: ListCall): Promise<ListAnswer> {
  const { clock } = caller.environment;
  const { options, parts } = call;
  const startedMs = clock.nowMs();
  const scope = openCall(caller, options);
  const total = parts.reduce((sum, { texts }) => sum + texts.length, 0);
  const tell = (progress: Progress) => {
    try {
      options.onProgress?.(progress);
    } catch (error) {
      // A fault of the caller's own is no reason to send anything again.
      scope.abort(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const count = options.onProgress === undefined ? null : createProgressCount(total, tell);
  let retries = 0;

  const runOne = (part: Part): Promise<Result> =>
    caller.gate.run(async () => {
      const own = count?.ofRequest(part.texts.length) ?? null;
      const params = call.paramsOf(part);
      const attempt = () => {
        const deadlineMs = scope.remainingMs();
        const onProgress = call.isStreaming && own !== null ? own.report : null;
        return sendOnce(caller, { method: call.method, params, deadlineMs, onProgress }, scope);
      };
      const isFinal = (error: RcpError) => part.texts.length > 1 && isTooMuch(error);
      const { policy, environment } = caller;
      try {
        const result = await withRetries(attempt, {
          policy,
          environment,
          scope,
          isFinal,
          onRetry: () => (retries += 1),
        });
        own?.finish();
        return result;
      } catch (error) {
        own?.drop();
        throw error;
      }
    }, scope.signal);

  const runPart = async (part: Part): Promise<PartAnswer[]> => {
    try {
      return [{ part, result: await runOne(part) }];
    } catch (error) {
      if (scope.signal.aborted || !(error instanceof RcpError)) throw error;
      if (part.texts.length < 2 || !isTooMuch(error)) throw inWholeList(error, part.start);
      const [first, second] = halve(part);
      return [...(await runPart(first)), ...(await runPart(second))];
    }
  };

  try {
    refuseAborted(scope);
    const answers = await Promise.all(
      parts.map((part) =>
        runPart(part).catch((error: unknown) => {
          // The first failure is the reason why the others end.
          if (error instanceof Error) scope.abort(error);
          throw error;
        }),
      ),
    );
    refuseAborted(scope);
    return { answers: answers.flat(), latencyMs: clock.nowMs() - startedMs, retries };
  } finally {
    scope.close();
  }
}

/**
 * Goes on only while the call may.
 * @throws the scope's reason
 */
function refuseAborted({ signal }: Scope): void {
  if (signal.aborted) throw abortErrorOf(signal);
}

/** Whether half of the same work may succeed: it was too large, or took longer than the server allows. */
const isTooMuch = ({ errorName }: RcpError) => errorName === 'tooLarge' || errorName === 'deadlineExceeded';

const indexedField = /^(inputs|texts|passages|documents)\[(\d+)\]/;

/** The same error, with the index that the text has in the caller's list. */
function inWholeList(error: RcpError, start: number): RcpError {
  const { code, message, data, retryable, wasSent } = error;
  const { field } = data;
  if (start === 0 || field === undefined || !indexedField.test(field)) return error;
  const shift = (text: string) =>
    text.replace(indexedField, (_, name: string, at: string) => `${name}[${Number(at) + start}]`);
  return new RcpError(code, shift(message), {
    data: { ...data, field: shift(field) },
    retryable,
    wasSent,
    cause: error,
  });
}
