/** Owns the methods that need no device: initialize, info, ping, shutdown. */
import { invalidField, ServiceError } from '../errors.ts';
import { protocolVersion, type InfoBuilder } from './capabilities.ts';
import type { RequestMember } from './envelope.ts';
import type { ControlMethod } from './methods.ts';
import { readLogLevel } from './log-level.ts';
import { readLenientObject, readParams, type Members } from './params.ts';
import type { Session } from './session.ts';

/**
 * The result of a control method as JSON bytes; `initialize` takes effect before it returns.
 * @throws invalidRequest, invalidParams, versionMismatch
 */
export function answerControl(
  method: ControlMethod,
  member: RequestMember,
  session: Session,
  info: InfoBuilder,
): Buffer {
  switch (method) {
    case 'initialize':
      return initialize(member, session, info);
    case 'info':
      readParams(member.params);
      return info.result(null);
    case 'ping':
      return ping(member);
    case 'shutdown':
      readParams(member.params);
      return Buffer.from('{}');
  }
}

function initialize(member: RequestMember, session: Session, info: InfoBuilder): Buffer {
  if (session.isStateful && session.isInitialized) {
    throw new ServiceError('invalidRequest', 'The session is initialized already');
  }
  const params = readParams(member.params);
  checkVersion(params);
  session.isInitialized = true;
  const level = readLogLevel(readLenientObject(params.get('_meta')).get('logLevel'));
  const wantsLog = isObject(readLenientObject(params.get('capabilities')).get('log'));
  session.logLevel = level ?? (wantsLog ? 'info' : null);
  return info.result(session.createToken?.() ?? null);
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null;

function checkVersion(params: Members): void {
  const version = params.get('protocolVersion') ?? protocolVersion;
  if (typeof version !== 'number' || !Number.isInteger(version)) {
    throw invalidField('protocolVersion', 'must be a whole number');
  }
  if (version < 1) {
    throw new ServiceError('versionMismatch', `protocolVersion: ${version} is not supported; use ${protocolVersion}`, {
      field: 'protocolVersion',
    });
  }
}

function ping(member: RequestMember): Buffer {
  const nonce = readParams(member.params).get('nonce') ?? null;
  if (nonce === null) return Buffer.from('{}');
  const { nonce: rawNonce } = member.tokens;
  if ((typeof nonce !== 'string' && typeof nonce !== 'number') || rawNonce === undefined) {
    throw invalidField('nonce', 'must be a string or a number');
  }
  return Buffer.from(`{"nonce":${rawNonce}}`);
}
