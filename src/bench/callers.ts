/** Owns the closed loop: some callers, each of which makes its next call when its last one is answered. */

/** Does `work` for everything that `next` gives until it gives null, `callers` at a time. */
export async function runCallers<Item>(
  callers: number,
  next: () => Item | null,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const caller = async () => {
    for (let item = next(); item !== null; item = next()) await work(item);
  };
  await Promise.all(Array.from({ length: callers }, caller));
}
