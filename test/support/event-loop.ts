/** Owns counting how often the event loop turns, for rules on work that may not hold it up. */

/** Turns of the event loop that pass while `work` is done. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const tick = () => {
    turns += 1;
    if (!isDone) setImmediate(tick);
  };
  setImmediate(tick);
  await work();
  isDone = true;
  return turns;
}
