/** Owns choices that only a seed decides. */

/** A number from 0 up to 1, without 1. */
export type Random = () => number;

/** A whole number from 0 up to the bound, without it. */
export const below = (random: Random, bound: number): number => Math.floor(random() * bound);

/** True once in so many times. */
export const oneIn = (random: Random, times: number): boolean => below(random, times) === 0;

/**
 * One of the items, each as likely as the others.
 * @throws Error where there is none
 */
export function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[below(random, items.length)];
  if (item === undefined) throw new Error('there is nothing to choose from');
  return item;
}
