/** Owns the time that is spent in the engine, and nowhere else. */
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { readOutput } from './outputs.ts';
import type { Output } from './outputs.ts';

/** Runs sessions and adds up how long they take. */
export interface EngineTimer {
  /** The named outputs; the others are not copied. */
  run(
    session: Pick<InferenceSession, 'run'>,
    feeds: Readonly<Record<string, Tensor>>,
    outputNames: readonly string[],
  ): Promise<ReadonlyMap<string, Output>>;
  /** @unit ms */
  elapsedMs(): number;
}

/** A timer at zero. */
export function createEngineTimer(): EngineTimer {
  let elapsedMs = 0;
  return {
    elapsedMs: () => elapsedMs,
    async run(session, feeds, outputNames) {
      const startMs = performance.now();
      const outputs = await session.run(feeds, outputNames);
      elapsedMs += performance.now() - startMs;
      return new Map(outputNames.map((name) => [name, readOutput(name, outputs[name])]));
    },
  };
}
