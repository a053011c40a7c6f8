/** Owns the rule that tokenising never holds up the thread that serves. */
import { describe, expect, it } from 'vitest';
import { loadMinilm, openMinilm } from './minilm.ts';
import { turnsDuring } from '../../support/event-loop.ts';

/** Far more than the few turns that the steps of a call themselves take. */
const manyTurns = 100;

describe('the event loop', () => {
  it('goes on turning while the library encodes a long text', async () => {
    const library = await openMinilm();
    const texts = ['word '.repeat(100_000)];
    expect(await turnsDuring(() => library.encodeBatch(texts))).toBeGreaterThan(manyTurns);
  });

  it.each([
    ['letters without a blank', 'a'.repeat(300_000)],
    ['signs that give no token', '\u0301'.repeat(300_000)],
  ])('goes on turning while a text of %s is tokenised', async (_, text) => {
    const tokenizer = await loadMinilm();
    expect(await turnsDuring(() => tokenizer.tokenize([text]))).toBeGreaterThan(manyTurns);
  });
});
