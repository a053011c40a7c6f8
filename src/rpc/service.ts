/** Owns the contract between the transports and the protocol. */
import type { ErrorName } from '../errors.ts';
import type { CallerQuota } from './quota.ts';
import type { CallTimes } from '../telemetry/stages.ts';
import type { TraceHeaders } from '../telemetry/trace.ts';
import type { Session } from './session.ts';

/** What a transport tells the service about one call, whatever its protocol. */
export interface CallContext extends TraceHeaders {
  readonly transport: 'http' | 'stdio';
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal;
  /** What the caller may take; absent or null where it has no bounds of its own. */
  readonly quota?: CallerQuota | null;
  /** Names the request in the log, and nowhere else. */
  readonly requestId: string;
}

/** What a transport tells the service about one frame. */
export interface FrameContext extends CallContext {
  /** Method named by the HTTP path, null at the bare base and on stdio. */
  readonly pathMethod: string | null;
  /** Session of this connection or header. */
  readonly session: Session;
  /** Receives notifications as complete JSON text; null where the transport can carry none. */
  readonly notify: ((frame: string) => void) | null;
}

/** The answer to one frame. */
export interface Reply {
  /** Complete JSON text; null when there is nothing to answer. */
  readonly body: Buffer | null;
  /** Set for a single overloaded answer. @unit ms */
  readonly retryAfterMs: number | null;
  /** True when a `shutdown` was obeyed in this frame. */
  readonly isShutdown: boolean;
  /** What the one call of the frame spent where; absent for an array, and where no call was read. */
  readonly times?: CallTimes;
}

/** Nothing to answer. */
export const silence: Reply = { body: null, retryAfterMs: null, isShutdown: false };

/** What transports call. */
export interface FrameService {
  /** Answers one frame; never rejects. */
  handleText(text: string, context: FrameContext): Promise<Reply>;
  /** Answer for a frame that never became text. */
  refuse(errorName: ErrorName, message: string, rawId: string | null, retryAfterMs?: number): Reply;
  /** True when the text is a single request with a progress token. */
  wantsProgress(text: string): boolean;
}
