/** Owns the way of one call: gate, params or request, deadline, run, answer; and the one catch at its end. */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Scheduler } from '../schedule/scheduler.ts';
import type { ServedTasks } from '../task/context.ts';
import type { EndedCall } from '../telemetry/record.ts';
import { CallStages, type CallTimes } from '../telemetry/stages.ts';
import type { Tracer } from '../telemetry/trace.ts';
import type { InfoBuilder } from './capabilities.ts';
import { answerControl } from './control.ts';
import type { Member, NotificationMember, RequestMember } from './envelope.ts';
import { openCall, type OpenCall } from './call.ts';
import { isControlMethod, isTaskMethod, methodKind, taskCapabilities, type TaskMethod } from './methods.ts';
import { readLogLevel, type LogLevel } from './log-level.ts';
import { createProgressReporter, readProgressToken, sendLog } from './notifications.ts';
import { readLenientObject, readParams, type Members } from './params.ts';
import { withQuota } from './quota.ts';
import { encodeError, encodeSuccess } from './reply.ts';
import { checkRequest, rcpMethodOf, runTask, type CallEnvironment, type TaskLimits } from './run-task.ts';
import { silence, type CallContext, type FrameContext, type Reply } from './service.ts';
import { readTaskCall } from './task-params.ts';
import type { RequestOf, ResultOf, TaskRequest } from './task-request.ts';

/** What a dispatcher is made of. */
export interface DispatchParts {
  readonly tasks: ServedTasks;
  readonly scheduler: Scheduler;
  readonly info: InfoBuilder;
  readonly clock: Clock;
  readonly limits: TaskLimits & { readonly deadlineMs: number };
  /** True once the process is on its way out: calls that need a device are refused. */
  readonly isDraining: () => boolean;
  readonly onCall: (record: EndedCall) => void;
  /** null: nobody records spans. */
  readonly tracer?: Tracer | null;
}

/** Answers single members. */
export interface Dispatcher {
  /** Starts a member at once, in the order of the calls; resolves with its reply and never rejects. */
  start(member: Member, context: FrameContext): Promise<Reply>;
  /** Runs a task that came in another protocol, as `start` would: same gates, bounds, counts and spans. */
  readonly run: RunTaskRequest;
  readonly count: CountCall;
}

/**
 * The result of a request; `onTimes` is told what it spent where, whatever came of it.
 * @throws ServiceError, and nothing else
 */
export type RunTaskRequest = <M extends TaskRequest['method']>(
  request: RequestOf<M>,
  context: CallContext,
  onTimes?: (times: CallTimes) => void,
) => Promise<ResultOf<M>>;

/** Counts a call of another protocol for which no task ran. */
export type CountCall = (
  call: Pick<EndedCall, 'method' | 'outcome' | 'latencyMs'>,
  context: Pick<CallContext, 'transport' | 'requestId'>,
) => void;

/** How a call ended. */
type ConductedCall<T> = ({ readonly value: T } | { readonly error: ServiceError }) & {
  readonly outcome: string;
  readonly latencyMs: number;
  readonly times: CallTimes;
};

/** A dispatcher over the configured tasks. */
export function createDispatcher(parts: DispatchParts): Dispatcher {
  const { tasks, scheduler, info, clock, limits, isDraining, onCall, tracer = null } = parts;
  const nowMs = () => clock.nowMs();

  async function start(member: Member, context: FrameContext): Promise<Reply> {
    switch (member.kind) {
      case 'invalid':
        return failed(member.rawId, new ServiceError('invalidRequest', member.message));
      case 'notification':
        return obey(member, context);
      case 'request':
        return answer(member, context);
    }
  }

  /** One call, whatever its protocol: its span, its stages, the one catch at its end, its count. */
  async function conduct<T>(
    method: string,
    context: CallContext,
    work: (stages: CallStages, startedMs: number) => Promise<T>,
  ): Promise<ConductedCall<T>> {
    const startedMs = clock.nowMs();
    const span = tracer === null ? null : tracer.startCall(method, startedMs, context);
    const stages = new CallStages(nowMs, startedMs, context.requestId, span);
    let ended: { readonly value: T } | { readonly error: ServiceError };
    let bug: unknown = null;
    try {
      ended = { value: await work(stages, startedMs) };
    } catch (thrown) {
      const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal', 'The server failed');
      if (error !== thrown) bug = thrown;
      ended = { error };
    }
    const endedMs = clock.nowMs();
    const latencyMs = endedMs - startedMs;
    const outcome = 'error' in ended ? ended.error.errorName : 'ok';
    span?.end(endedMs, outcome);
    onCall({ method, outcome, transport: context.transport, latencyMs, bug, stages });
    return { ...ended, outcome, latencyMs, times: stages.times(endedMs) };
  }

  async function answer(member: RequestMember, context: FrameContext): Promise<Reply> {
    const method = methodKind(member.method) === 'undefined' ? 'undefined' : member.method;
    const call = await conduct(method, context, async (stages, startedMs) =>
      encodeSuccess(member.rawId, await runMethod(member, context, stages, startedMs)),
    );
    const { outcome, latencyMs, times } = call;
    logCall(member, context, { method, outcome, latencyMs: Math.round(latencyMs) });
    if ('error' in call) return { ...failed(member.rawId, call.error), times };
    return { ...silence, body: call.value, isShutdown: member.method === 'shutdown', times };
  }

  async function run<M extends TaskRequest['method']>(
    request: RequestOf<M>,
    context: CallContext,
    onTimes?: (times: CallTimes) => void,
  ): Promise<ResultOf<M>> {
    const method = rcpMethodOf(request.method);
    const call = await conduct(method, context, async (stages, startedMs) => {
      checkOffered(method);
      checkRequest(request, tasks, limits);
      checkOpen();
      const opened = openCall({ callerSignal: context.signal, clock, deadlineMs: limits.deadlineMs, register: null });
      try {
        opened.signal.throwIfAborted();
        return await runTask<M>(request, tasks, environmentOf(context, opened, stages, startedMs, null));
      } finally {
        opened.close();
      }
    });
    onTimes?.(call.times);
    if ('error' in call) throw call.error;
    return call.value;
  }

  const checkOffered = (method: TaskMethod) => {
    if (Object.hasOwn(info.capabilities, taskCapabilities[method])) return;
    throw notOffered();
  };

  const checkOpen = () => {
    if (isDraining()) throw new ServiceError('unavailable', 'The server is shutting down', { retryAfterMs: 1000 });
  };

  const environmentOf = (
    context: CallContext,
    { signal, remainingMs }: OpenCall,
    stages: CallStages,
    startedMs: number,
    onProgress: CallEnvironment['onProgress'],
  ): CallEnvironment => ({
    scheduler: context.quota ? withQuota(scheduler, context.quota) : scheduler,
    signal,
    remainingMs,
    stages,
    onProgress,
    maxAnswerBytes: limits.maxAnswerBytes,
    usage: (usage) => ({ ...usage, latencyMs: clock.nowMs() - startedMs }),
  });

  async function runMethod(
    member: RequestMember,
    context: FrameContext,
    stages: CallStages,
    startedMs: number,
  ): Promise<Buffer> {
    const { method } = member;
    if (context.pathMethod !== null && context.pathMethod !== method) {
      throw new ServiceError('invalidRequest', 'The method in the path and the method in the body differ');
    }
    if (method === 'notifications/cancel') {
      throw new ServiceError('invalidRequest', 'notifications/cancel must not have an id');
    }
    if (isControlMethod(method)) {
      const result = answerControl(method, member, context.session, info);
      if (method === 'shutdown') context.session.shutDown();
      return result;
    }
    if (!context.session.isInitialized) throw new ServiceError('notInitialized', 'Send initialize first');
    if (methodKind(method) === 'undefined') throw new ServiceError('methodNotFound', 'RCP/1 has no such method');
    if (!isTaskMethod(method)) throw notOffered();
    checkOffered(method);
    const params = readParams(member.params);
    const prepared = readTaskCall(method, params, tasks, limits);
    checkOpen();
    const meta = readLenientObject(params.get('_meta'));
    const call = openCall({
      callerSignal: context.signal,
      clock,
      deadlineMs: readDeadlineMs(meta, limits.deadlineMs),
      register: (controller) => context.session.register(member.rawId, controller),
    });
    try {
      call.signal.throwIfAborted();
      const token = readProgressToken(member.tokens.progressToken);
      const onProgress = createProgressReporter(token, method, context.notify);
      const environment = environmentOf(context, call, stages, startedMs, onProgress);
      return await prepared((request) => runTask(request, tasks, environment), stages);
    } finally {
      call.close();
    }
  }

  /** Obeys a notification; anything it may want is done without a word. */
  function obey(member: NotificationMember, context: FrameContext): Reply {
    const isMisplaced = context.pathMethod !== null && context.pathMethod !== member.method;
    if (isMisplaced) return silence;
    if (member.method === 'notifications/cancel') {
      const { paramsId } = member.tokens;
      if (paramsId !== undefined) context.session.cancel(paramsId);
    }
    if (member.method !== 'shutdown') return silence;
    // Over HTTP a shutdown that nobody can be told about changes nothing.
    if (context.transport === 'http') return silence;
    context.session.shutDown();
    return { ...silence, isShutdown: true };
  }

  const count: CountCall = ({ method, outcome, latencyMs }, { transport, requestId }) => {
    const stages = new CallStages(nowMs, clock.nowMs() - latencyMs, requestId, null);
    onCall({ method, outcome, transport, latencyMs, bug: null, stages });
  };

  return { start, run, count };
}

const notOffered = () => new ServiceError('capabilityNotAdvertised', 'This server does not offer the method; see info');

function failed(rawId: string, error: ServiceError): Reply {
  const isOverload = error.errorName === 'overloaded';
  return {
    ...silence,
    body: encodeError(rawId, error),
    retryAfterMs: isOverload ? (error.data.retryAfterMs ?? null) : null,
  };
}

/** The caller's deadline, never beyond the server's; anything but a number is ignored. */
function readDeadlineMs(meta: Members, serverDeadlineMs: number): number {
  const value = meta.get('deadlineMs');
  return typeof value === 'number' && !Number.isNaN(value) ? Math.min(value, serverDeadlineMs) : serverDeadlineMs;
}

function logCall(
  member: RequestMember,
  context: FrameContext,
  data: { method: string; outcome: string; latencyMs: number },
): void {
  // HTTP carries progress only.
  if (context.transport !== 'stdio') return;
  const params: unknown = member.params;
  const meta = readLenientObject(readLenientObject(params).get('_meta'));
  const level: LogLevel = data.outcome === 'ok' ? 'info' : data.outcome === 'internal' ? 'error' : 'warning';
  const message = data.outcome === 'ok' ? 'call answered' : 'call failed';
  sendLog(context.session, readLogLevel(meta.get('logLevel')), context.notify, { level, message, data });
}
