/** Owns the spelling of frames in tests: what is sent, and what is expected. */
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/** A request as text. */
export const request = (id: string | number, method: string, params?: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });

/** A notification as text. */
export const notification = (method: string, params?: unknown): string =>
  JSON.stringify({ jsonrpc: '2.0', method, params });

/** An array of frames as text. */
export const batch = (...frames: string[]): string => `[${frames.join(',')}]`;

/** What the clients that exist send first. */
export const handshake = (id: string | number = 1): string =>
  request(id, 'initialize', { protocolVersion: 1, client: { name: 'contract', version: '1' }, capabilities: {} });

/** A request for the vectors of texts. */
export const embedding = (id: string | number, ...inputs: unknown[]): string => request(id, 'embed', { inputs });

/** Expected: this value and nothing beside it, where `toMatchObject` would allow more. */
export const exactly = (value: unknown): unknown =>
  expect.toSatisfy((actual: unknown) => isDeepStrictEqual(actual, value), `exactly ${JSON.stringify(value)}`);

/** Expected: a success with at least these members. */
export const ok = (id: unknown, result: unknown = expect.any(Object)): object => ({ jsonrpc: '2.0', id, result });

/** Expected: the answer to a ping. */
export const pong = (id: unknown, nonce?: unknown): object => ok(id, exactly(nonce === undefined ? {} : { nonce }));

/** Expected: an error with this code and at least these members of `data`. */
export const failure = (id: unknown, code: number, data?: object): object => ({
  jsonrpc: '2.0',
  id,
  error: { code, message: expect.stringMatching(/./), ...(data === undefined ? {} : { data }) },
});

/** Expected: the vectors of one embed call. */
export const vectors = (id: unknown, ...rows: number[][]): object => ok(id, { vectors: rows });
