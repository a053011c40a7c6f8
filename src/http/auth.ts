/** Owns checking the bearer key of a request. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** Says whether the value of an `Authorization` header may pass. */
export type KeyCheck = (authorization: string | undefined) => boolean;

// Node hands header bytes over as latin1; digests have one length, so that the comparison leaks neither length nor prefix.
const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest();

/** A check against one key in constant time; without a key everything passes. */
export function createKeyCheck(apiKey: string | null): KeyCheck {
  if (apiKey === null) return () => true;
  const expected = digestOf(Buffer.from(apiKey, 'utf8'));
  return (authorization) => {
    const presented = /^bearer +(.+?) *$/i.exec(authorization ?? '')?.[1];
    return timingSafeEqual(expected, digestOf(Buffer.from(presented ?? '', 'latin1'))) && presented !== undefined;
  };
}
