/** Owns a process that pings a server at a steady pace, so that no work of the load's own process is in the times. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from './http-client.ts';

/** Pause between two pings. @unit ms */
const pauseMs = 10;
/** Most pings, whatever happens. */
const maxPings = 20_000;

const [, , baseUrl = ''] = process.argv;
const client = createClient(baseUrl, 1);
const pingMs: number[] = [];
const stop = new AbortController();
process.on('message', () => {
  stop.abort();
});
process.on('disconnect', () => process.exit(0));

// The first call opens the connection and is not counted.
await client.call('ping', {});
process.send?.('started');
while (!stop.signal.aborted && pingMs.length < maxPings) {
  pingMs.push(await client.call('ping', {}));
  await sleep(pauseMs);
}
client.close();
process.send?.(pingMs);
