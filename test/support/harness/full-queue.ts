/** Owns filling a fixture server whose queue has two places: what comes next is refused. */
import type { Answer, RcpClient } from './client.ts';
import { embedding } from './frames.ts';
import type { TestServer } from './server.ts';

/** What runs and what waits after each call of one text: one runs, the executor has another, two wait. */
const states = [
  [1, 0],
  [1, 1],
  [2, 1],
  [2, 2],
] as const;

/** Calls 1 to 4: the first, `hold`, runs until it is released; the others, `queued N`, wait. */
export async function fillQueue(client: RcpClient, server: TestServer): Promise<Promise<Answer>[]> {
  const accepted: Promise<Answer>[] = [];
  for (const [running, waiting] of states) {
    const id = accepted.length + 1;
    accepted.push(client.ask(embedding(id, id === 1 ? 'hold' : `queued ${id}`)));
    await server.untilBusy(running, waiting);
  }
  return accepted;
}
