/** Owns the way of one call: gate, params, deadline, run, answer; and the one catch at its end. */
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { Scheduler } from '../schedule/scheduler.ts';
import type { ServedTasks } from '../task/context.ts';
import type { EndedCall } from '../telemetry/record.ts';
import { CallStages } from '../telemetry/stages.ts';
import type { Tracer } from '../telemetry/trace.ts';
import type { InfoBuilder } from './capabilities.ts';
import { answerControl } from './control.ts';
import type { Member, NotificationMember, RequestMember } from './envelope.ts';
import { openCall } from './call.ts';
import { isControlMethod, isTaskMethod, methodKind, taskCapabilities } from './methods.ts';
import { readLogLevel, type LogLevel } from './log-level.ts';
import { createProgressReporter, readProgressToken, sendLog } from './notifications.ts';
import { readLenientObject, readParams, type Members } from './params.ts';
import { withQuota } from './quota.ts';
import { encodeError, encodeSuccess } from './reply.ts';
import { silence, type FrameContext, type Reply } from './service.ts';
import { prepareTask, type TaskLimits } from './tasks.ts';

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
}

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

  async function answer(member: RequestMember, context: FrameContext): Promise<Reply> {
    const startedMs = clock.nowMs();
    const method = methodKind(member.method) === 'undefined' ? 'undefined' : member.method;
    const span = tracer === null ? null : tracer.startCall(method, startedMs, context);
    const stages = new CallStages(nowMs, startedMs, context.requestId, span);
    let outcome = 'ok';
    let bug: unknown = null;
    try {
      const result = await runMethod(member, context, stages, startedMs);
      const body = encodeSuccess(member.rawId, result);
      return { ...silence, body, isShutdown: member.method === 'shutdown', times: stages.times(clock.nowMs()) };
    } catch (thrown) {
      const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal', 'The server failed');
      if (error !== thrown) bug = thrown;
      outcome = error.errorName;
      return { ...failed(member.rawId, error), times: stages.times(clock.nowMs()) };
    } finally {
      const endedMs = clock.nowMs();
      const latencyMs = endedMs - startedMs;
      span?.end(endedMs, outcome);
      onCall({ method, outcome, transport: context.transport, latencyMs, bug, stages });
      logCall(member, context, { method, outcome, latencyMs: Math.round(latencyMs) });
    }
  }

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
    if (!isTaskMethod(method) || !Object.hasOwn(info.capabilities, taskCapabilities[method])) {
      throw new ServiceError('capabilityNotAdvertised', 'This server does not offer the method; see info');
    }
    const params = readParams(member.params);
    const run = prepareTask(method, params, tasks, limits);
    if (isDraining()) throw new ServiceError('unavailable', 'The server is shutting down', { retryAfterMs: 1000 });
    const meta = readLenientObject(params.get('_meta'));
    const call = openCall({ rawId: member.rawId, context, clock, deadlineMs: readDeadlineMs(meta, limits.deadlineMs) });
    try {
      call.signal.throwIfAborted();
      const token = readProgressToken(member.tokens.progressToken);
      return await run({
        scheduler: context.quota ? withQuota(scheduler, context.quota) : scheduler,
        signal: call.signal,
        remainingMs: call.remainingMs,
        stages,
        onProgress: createProgressReporter(token, method, context.notify),
        usage: (usage) => ({ ...usage, latencyMs: clock.nowMs() - startedMs }),
      });
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

  return { start };
}

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
