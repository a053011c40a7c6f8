/** Owns the comparison of what a model serves with what transformers.js gives for the same graph file. */
import type { RunRow } from '../executor/protocol.ts';
import { precisionLabel } from '../model/convert/steps.ts';
import type { ModelManifest } from '../model/manifest.ts';
import { sigmoid } from '../tensor/score.ts';
import { expectedRow } from './expected-row.ts';
import { ReferenceFailure, withReference } from './reference.ts';
import type { Reference } from './reference.ts';
import type { ReferenceClass, ReferenceIds } from './reference-messages.ts';
import type { Sample } from './samples.ts';
import { readManifest, serveHeads } from './served-heads.ts';
import type { ServedHead, VerifySource } from './served-heads.ts';
import { judge, notCompared, toleranceOf } from './verdict.ts';
import type { HeadReport } from './verdict.ts';

/** What was found about a model. */
export interface VerifyReport {
  readonly modelId: string;
  /** As `identity` names it, such as `fp16->fp32`. */
  readonly precision: string;
  /** The graph file that both ran, before what trivec converts. */
  readonly graphPath: string;
  /** Version of transformers.js; null where it could not open the model. */
  readonly transformersJs: string | null;
  readonly heads: readonly HeadReport[];
}

function classOf({ heads, sparse, yesNo }: ModelManifest): ReferenceClass {
  if (heads.includes('logit')) return yesNo === null ? 'AutoModelForSequenceClassification' : 'AutoModelForCausalLM';
  return sparse?.form === 'terms' ? 'AutoModelForMaskedLM' : 'AutoModel';
}

const isSame = (ones: ArrayLike<number>, others: ArrayLike<number>): boolean =>
  ones.length === others.length && Array.from(ones).every((one, position) => one === others[position]);

/** Whether ids and, where the graph takes them, segments are the same; no segments are all 0. */
export function hasSameIds(
  { tokenized: { ids, typeIds } }: Pick<Sample, 'tokenized'>,
  reference: ReferenceIds,
  hasTypeIds: boolean,
): boolean {
  const zeros = new Uint8Array(ids.length);
  return isSame(ids, reference.ids) && (!hasTypeIds || isSame(typeIds ?? zeros, reference.typeIds ?? zeros));
}

const scoreOf = ({ values }: RunRow): RunRow => ({ values: values.map(sigmoid), indices: null });

/** Positions of the samples for which transformers.js has the same ids. */
async function findSameIds(samples: readonly Sample[], hasTypeIds: boolean, reference: Reference): Promise<number[]> {
  const same: number[] = [];
  for (const [index, sample] of samples.entries()) {
    if (hasSameIds(sample, await reference.encode(sample), hasTypeIds)) same.push(index);
  }
  return same;
}

async function compare(served: ServedHead, manifest: ModelManifest, reference: Reference): Promise<HeadReport> {
  const { recipe, givesScore, samples, rows } = served;
  const { head, source } = recipe;
  const counts = { texts: samples.length, sameIds: 0 };
  try {
    const same = await findSameIds(samples, manifest.inputs.names.includes('token_type_ids'), reference);
    counts.sameIds = same.length;
    const pairs: { readonly served: RunRow; readonly expected: RunRow }[] = [];
    for (const index of same) {
      const [sample, row] = [samples[index], rows[index]];
      if (sample === undefined || row === undefined) throw new Error('an executor gives a row for each item');
      const expected = expectedRow(await reference.run(sample.item, source.output.name), recipe, sample.item);
      pairs.push({ served: givesScore ? scoreOf(row) : row, expected });
    }
    return judge({ head, texts: samples.length, pairs, tolerance: toleranceOf(manifest) });
  } catch (error) {
    if (!(error instanceof ReferenceFailure)) throw error;
    return notCompared(head, counts, error.message);
  }
}

/**
 * What transformers.js says of the model as it would be served on a CPU, head by head. It runs in a process of its own.
 * @throws ConfigurationError where trivec cannot serve the model at all
 */
export async function verifyModel(source: VerifySource): Promise<VerifyReport> {
  const manifest = await readManifest(source);
  const { folder, graphPath, modelId } = manifest;
  const served = await serveHeads(manifest, source);
  const precision = precisionLabel(manifest.precision, manifest.conversion ?? []);
  const about = { modelId, precision, graphPath };
  const model = { folder, graphPath, modelClass: classOf(manifest) };
  try {
    return await withReference(source.entries.reference, model, async (reference) => {
      const heads: HeadReport[] = [];
      for (const one of served) heads.push(await compare(one, manifest, reference));
      return { ...about, transformersJs: reference.version, heads };
    });
  } catch (error) {
    if (!(error instanceof ReferenceFailure)) throw error;
    const { message } = error;
    const heads = served.map(({ recipe, samples: { length: texts } }) =>
      notCompared(recipe.head, { texts, sameIds: 0 }, message),
    );
    return { ...about, transformersJs: null, heads };
  }
}
