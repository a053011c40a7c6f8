/** Owns the entry of a server that a benchmark starts: the program itself, which ends when the benchmark is gone. */
import { pathToFileURL } from 'node:url';

/** A benchmark that is killed ends nothing any more, but its channel to the server closes. */
process.once('disconnect', () => {
  process.kill(process.pid, 'SIGTERM');
});
// What is listened for would keep a server that wants to end.
process.channel?.unref();

// The program reads its command line as if it had been started itself.
process.argv.splice(1, 1);
await import(pathToFileURL(process.argv[1] ?? '').href);
