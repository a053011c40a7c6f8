/** Owns the way of one frame: text to members, members to replies, replies to one answer. */
import { setMaxListeners } from 'node:events';
import { ServiceError } from '../errors.ts';
import type { Dispatcher } from './dispatch.ts';
import { parseFrame, type Member } from './envelope.ts';
import { frameLimits } from './json-text.ts';
import { readProgressToken } from './notifications.ts';
import { scanFrame } from './raw-tokens.ts';
import { encodeError } from './reply.ts';
import { silence, type FrameContext, type FrameService, type Reply } from './service.ts';

/** A service that answers frames through a dispatcher. */
export function createFrameService(dispatcher: Dispatcher, limits: { maxBatchMembers: number }): FrameService {
  const refuse = (error: ServiceError, rawId = 'null'): Reply => ({ ...silence, body: encodeError(rawId, error) });

  async function handleBatch(members: readonly Member[], context: FrameContext): Promise<Reply> {
    if (members.length > limits.maxBatchMembers) {
      const isSilent = members.every((member) => member.kind === 'notification');
      return isSilent ? silence : refuse(tooManyMembers(members.length, limits.maxBatchMembers));
    }
    // The transport has let one call in.
    context.quota?.chargeRequests(members.length - 1);
    // Every member listens, which is no leak: Node would warn of more than ten.
    setMaxListeners(0, context.signal);
    // Started in order, awaited together: what a member changes at its start is seen by those behind it.
    const started = members.map((member) => dispatcher.start(member, context));
    const replies = await Promise.all(started);
    const bodies = replies.flatMap(({ body }) => (body === null ? [] : [body]));
    return {
      body: bodies.length === 0 ? null : joinArray(bodies),
      retryAfterMs: null,
      isShutdown: replies.some((reply) => reply.isShutdown),
    };
  }

  return {
    async handleText(text, context) {
      const frame = parseFrame(text);
      switch (frame.kind) {
        case 'refused':
          return refuse(new ServiceError(frame.errorName, frame.message));
        case 'single':
          return dispatcher.start(frame.member, context);
        case 'batch':
          return handleBatch(frame.members, context);
      }
    },
    refuse(errorName, message, rawId, retryAfterMs) {
      const reply = refuse(new ServiceError(errorName, message, { retryAfterMs }), rawId ?? 'null');
      return { ...reply, retryAfterMs: retryAfterMs ?? null };
    },
    wantsProgress(text) {
      // A cheap look first: most frames name no token at all. The scan alone decides, so that nothing is parsed twice.
      if (!text.includes('"progressToken"')) return false;
      const { members, isArray } = scanFrame(text, frameLimits);
      return !isArray && members[0]?.id !== undefined && readProgressToken(members[0].progressToken) !== null;
    },
  };
}

function tooManyMembers(received: number, limit: number): ServiceError {
  return new ServiceError('invalidParams', `The batch has ${received} members, the limit is ${limit}`, {
    limit,
    received,
  });
}

function joinArray(bodies: readonly Buffer[]): Buffer {
  const parts = bodies.flatMap((body, index) => [Buffer.from(index === 0 ? '[' : ','), body]);
  return Buffer.concat([...parts, Buffer.from(']')]);
}
