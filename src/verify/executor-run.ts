/** Owns an executor process that runs one model for a comparison, each text alone. */
import { systemClock } from '../clock.ts';
import { forkExecutor } from '../device/channel.ts';
import { openConversation } from '../device/conversation.ts';
import { defaultDeviceLimits } from '../device/limits.ts';
import { everyHead } from '../device/warm-up.ts';
import type { Head, ModelLoad, RunItem, RunRow } from '../executor/protocol.ts';

/** What a pass over some texts gave. */
export interface Pass {
  /** One for each item. */
  readonly rows: readonly RunRow[];
  /** @unit ms */
  readonly computeMs: number;
}

/** Runs every item alone, in order. */
export type RunAlone = (head: Head, items: readonly RunItem[]) => Promise<Pass>;

/**
 * What `work` gives with an executor that has loaded the model on one thread of the CPU; the executor is gone afterwards.
 * @param entry the compiled entry file of the executor
 */
export async function withExecutor<Result>(
  entry: string,
  load: ModelLoad,
  work: (runAlone: RunAlone) => Promise<Result>,
): Promise<Result> {
  const channel = forkExecutor(entry)('comparison');
  const limits = defaultDeviceLimits;
  const conversation = openConversation({ channel, clock: systemClock, limits, onGone: () => undefined });
  try {
    await conversation.load([load], 1, { name: 'cpu', deviceIndex: 0 }, everyHead([load]));
    return await work(async (head, items) => {
      const rows: RunRow[] = [];
      let computeMs = 0;
      for (const item of items) {
        const result = await conversation.run({ modelId: load.modelId, head, items: [item], queryRows: null }).answer;
        rows.push(...result.rows.flatMap((row) => row ?? []));
        computeMs += result.computeMs;
      }
      return { rows, computeMs };
    });
  } finally {
    conversation.end('the comparison is over');
  }
}
