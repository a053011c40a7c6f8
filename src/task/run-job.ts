/** Owns the run of a job some of whose texts have no tokens: those get the values of nothing, without a run. */
import type { Head, RunRow } from '../executor/protocol.ts';
import type { ModelManifest } from '../model/manifest.ts';
import type { Job, JobOutcome } from '../schedule/call.ts';
import type { Admission } from '../schedule/scheduler.ts';
import type { CallStages } from '../telemetry/stages.ts';

/**
 * What a text without any token has: a vector of zeros, no terms, one row of zeros (of the encoder's own: none), or 0,
 * which is its MaxSim sum.
 * Only models without special tokens meet such texts; the reference pads them and pools no row at all.
 */
export function emptyRow(head: Head, { dimension, rowDimension }: ModelManifest): RunRow {
  const length = { dense: dimension, sparse: 0, rows: rowDimension, logit: 1, maxSim: 1, hidden: 0 }[head];
  return { values: new Float32Array(length), indices: head === 'sparse' ? new Int32Array() : null };
}

/**
 * The rows of all items, in order; the device is null where nothing had to run.
 * @throws as `Admission.run`
 */
export async function runJob(
  admission: Admission,
  model: ModelManifest,
  given: Job,
  stages: CallStages,
): Promise<JobOutcome> {
  const job = { ...given, requestId: stages.requestId };
  const facts = { modelId: model.modelId, items: job.items };
  return stages.run(facts, () => runFilled(admission, model, job));
}

async function runFilled(admission: Admission, model: ModelManifest, job: Job): Promise<JobOutcome> {
  const positions = job.items.flatMap(({ ids }, index) => (ids.length === 0 ? [] : [index]));
  if (positions.length === job.items.length) return admission.run(job);
  job.signal.throwIfAborted();
  const rows = job.items.map(() => emptyRow(job.key.head, model));
  for (let done = positions.length; done < rows.length; done++) job.onItemDone?.();
  if (positions.length === 0) return { rows, queueMs: 0, computeMs: 0, device: null };
  const outcome = await admission.run({
    ...job,
    items: job.items.filter(({ ids }) => ids.length > 0),
    fieldOf: (index) => job.fieldOf(positions[index] ?? index),
  });
  for (const [index, row] of outcome.rows.entries()) rows[positions[index] ?? index] = row;
  return { ...outcome, rows };
}
