/** Owns the rows that are kept: bounded in bytes, those that were not asked for the longest go first. */
import { LRUCache } from 'lru-cache';
import type { RunRow } from '../executor/protocol.ts';
import { keyBytes } from './row-key.ts';

/** Largest part of the cache that one row may take; a larger one would push out too many others. */
export const maxRowShare = 1 / 8;

/**
 * What an entry and each of its arrays cost beside their bytes. Resident memory for each of 60,000 to 300,000 entries,
 * the key included: 557 to 716 bytes above the values of one array, 1,024 above those of two.
 * @unit bytes
 */
const entryOverheadBytes = 320;
const arrayOverheadBytes = 384;

/** Memory that a kept row takes. @unit bytes */
export function keptBytesOf({ values, indices }: Pick<RunRow, 'values' | 'indices'>): number {
  const arrays = indices === null ? [values] : [values, indices];
  return arrays.reduce((sum, { byteLength }) => sum + byteLength + arrayOverheadBytes, entryOverheadBytes + keyBytes);
}

/** Rows by key. */
export interface RowStore {
  /** A row that was kept, undefined where there is none; it is everybody's, and is only read. */
  find(key: string): RunRow | undefined;
  /** Keeps a copy of a row, unless it is too large. */
  keep(key: string, row: RunRow): void;
  /** Memory in use, never above the bound. */
  bytes(): number;
}

/** An empty store. @param maxBytes bound of its memory, above 0 */
export function createRowStore(maxBytes: number): RowStore {
  const rows = new LRUCache<string, RunRow>({ maxSize: maxBytes, maxEntrySize: Math.ceil(maxBytes * maxRowShare) });
  return {
    find: (key) => rows.get(key),
    keep(key, { values, indices }) {
      const size = keptBytesOf({ values, indices });
      // Judged before the copy is made; the cache judges by the same bound.
      if (size > rows.maxEntrySize) return;
      // A copy: a row that came from an executor is a view of the whole message, which must not live as long.
      rows.set(key, { values: values.slice(), indices: indices?.slice() ?? null }, { size });
    },
    bytes: () => rows.calculatedSize,
  };
}
