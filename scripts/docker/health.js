/** Owns the image's health check: exit 0 while the server inside the container is ready, else 1. */

const port = process.env.TRIVEC_PORT ?? '8000';
try {
  const answer = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal: AbortSignal.timeout(4000) });
  if (!answer.ok) process.stdout.write(`${answer.status} ${await answer.text()}\n`);
  process.exitCode = answer.ok ? 0 : 1;
} catch (error) {
  process.stdout.write(`${String(error)}\n`);
  process.exitCode = 1;
}
