/** An executor that proves itself, and whose first real run takes memory without end. */
const row = { values: Float32Array.of(1), indices: null };
const hoard = [];
let runs = 0;
process.on('message', (message) => {
  if (message.type === 'load') {
    process.send({ type: 'loaded', executionProvider: 'cpu', loadMs: 1, placements: [] });
  } else if (message.type === 'run') {
    runs += 1;
    if (runs === 1) {
      const residentBytes = process.memoryUsage.rss();
      process.send({ type: 'result', runId: message.runId, rows: [row], computeMs: 1, residentBytes });
    } else {
      setInterval(() => hoard.push(Buffer.alloc(20_000_000, 1)), 5);
    }
  } else process.exit(0);
});
