/** Owns the key of a row: a digest of everything that its values follow from, laid out so that no two inputs meet. */
import { hash } from 'node:crypto';
import type { RunItem } from '../executor/protocol.ts';
import type { RunKey } from '../schedule/item.ts';

/** Stands for the length of what is not there; nothing is this long. */
const absent = 0xff_ff_ff_ff;

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/**
 * What all items of a job have in common: the identity of what runs them, the head, and the query's rows, bit by bit.
 * @shape u8 [32]
 */
export function jobDigest(identity: string, { modelId, head, queryRows }: RunKey): Uint8Array {
  const shape = queryRows === null ? null : [queryRows.dimension, queryRows.values.length];
  const facts = Buffer.from(JSON.stringify([identity, modelId, head, shape]));
  const values = queryRows === null ? [] : [bytesOf(queryRows.values)];
  return hash('sha256', Buffer.concat([bytesOf(Uint32Array.of(facts.length)), facts, ...values]), 'buffer');
}

/**
 * The bytes whose digest is an item's key: the lengths of all parts, which say where each one begins, then the parts.
 * What an item shares with other heads is added when it runs and changes none of its own values.
 */
export function itemLayout(job: Uint8Array, item: Omit<RunItem, 'sharedHeads'>): Uint8Array {
  const { ids, typeIds, keptRows, promptTokens, attendedTokens } = item;
  const lengths = Uint32Array.of(
    ids.length,
    typeIds?.length ?? absent,
    keptRows?.length ?? absent,
    promptTokens ?? absent,
    attendedTokens ?? absent,
  );
  const parts = [ids, typeIds, keptRows].filter((part) => part !== null);
  return Buffer.concat([job, bytesOf(lengths), ...parts.map(bytesOf)]);
}

/** Length of every key, one byte a character. @unit bytes */
export const keyBytes = 43;

/** The key of a layout. */
export const keyOf = (layout: Uint8Array): string => hash('sha256', layout, 'base64url');
