/** Owns the probe process: it tries one device, says once what came of it, and waits to be ended. */
import { watchParent } from './parent-watch.ts';
import type { ProbeAnswer, ProbeQuestion } from './probe-protocol.ts';

async function answer(question: ProbeQuestion): Promise<ProbeAnswer> {
  try {
    // Loaded here: libraries may hang or be broken, and by now the parent is watched and an error has a listener.
    const { measure } = await import('./probe-run.ts');
    return { type: 'probed', ...(await measure(question)) };
  } catch (error) {
    return { type: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

const watched = watchParent(Number(process.argv[2]));
process.once('message', (question: ProbeQuestion) => {
  void watched.then(() => answer(question)).then((said) => process.send?.(said));
});
