/** Owns who a caller is: the keys in force, compared in constant time, each with accounts of its own. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../clock.ts';
import { createCallerQuota } from '../rpc/quota.ts';
import type { CallerQuota, QuotaLimits, QuotaReason } from '../rpc/quota.ts';
import type { KeyEntry } from './key-file.ts';

/** Somebody who may pass. */
export interface Caller {
  /** Accounts of the caller's key; null for everybody where no key is set. */
  readonly quota: CallerQuota | null;
}

/** The caller that the value of an `Authorization` header stands for; null for one who may not pass. */
export type Identify = (authorization: string | undefined) => Caller | null;

/** The keys in force. */
export interface KeyRing {
  readonly identify: Identify;
  /** Puts other keys in force; one that stays keeps its accounts. */
  replace(entries: readonly KeyEntry[]): void;
}

/** What a ring works with. */
export interface KeyRingParts {
  readonly clock: Clock;
  /** Bounds of a key whose own entry says nothing. */
  readonly limits: QuotaLimits;
  /** Told of each call that a key's bounds refused; the name is null for a key without one. */
  readonly onRefused: (name: string | null, reason: QuotaReason) => void;
  /** Told of each name that is no longer in force. */
  readonly onForgotten: (name: string) => void;
}

/** Where no key is set. */
export const identifyEverybody: Identify = () => ({ quota: null });

// Digests have one length, so that a comparison leaks neither length nor prefix.
const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
const bearerPattern = /^bearer +(.+?) *$/i;

interface Key {
  readonly digest: Buffer;
  readonly name: string | null;
  readonly caller: { readonly quota: CallerQuota };
}

/** A ring of these keys; it keeps their digests, not the keys. */
export function createKeyRing(entries: readonly KeyEntry[], parts: KeyRingParts): KeyRing {
  let keys: readonly Key[] = [];

  const keyOf = (entry: KeyEntry): Key => {
    const { name } = entry;
    const digest = digestOf(Buffer.from(entry.key, 'utf8'));
    const limits = { ...parts.limits, ...entry.limits };
    const known = keys.find((key) => key.name === name && key.digest.equals(digest));
    known?.caller.quota.update(limits);
    const onRefused = (reason: QuotaReason) => {
      parts.onRefused(name, reason);
    };
    return known ?? { digest, name, caller: { quota: createCallerQuota(limits, { clock: parts.clock, onRefused }) } };
  };

  const replace = (next: readonly KeyEntry[]) => {
    const before = keys;
    keys = next.map(keyOf);
    const names = new Set(keys.map(({ name }) => name));
    for (const { name } of before) if (name !== null && !names.has(name)) parts.onForgotten(name);
  };

  replace(entries);
  return {
    replace,
    identify(authorization) {
      const presented = bearerPattern.exec(authorization ?? '')?.[1];
      // Node hands header bytes over as latin1.
      const digest = digestOf(Buffer.from(presented ?? '', 'latin1'));
      let caller: Caller | null = null;
      // Always through all of them: the time tells nothing about which one fits.
      for (const key of keys) if (timingSafeEqual(key.digest, digest)) caller = key.caller;
      return presented === undefined ? null : caller;
    },
  };
}
