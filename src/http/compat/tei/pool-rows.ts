/** Owns pooling the rows of a text where the model's own graph does not do it alone. */
import type { ModelFacts } from '../../../rpc/served-facts.ts';
import type { ResultOf } from '../../../rpc/task-request.ts';

type Matrix = ResultOf<'hidden'>['matrices'][number];
type Pooling = NonNullable<ModelFacts['vectors']['plainPooling']>;

/**
 * The pooled rows, summed in double precision.
 * @shape f32 [rows, dimension] -> f32 [dimension]
 */
export function poolRows({ values, dimension }: Matrix, pooling: Pooling): Float32Array {
  if (pooling === 'cls') return values.slice(0, dimension);
  if (pooling === 'lastToken') return values.slice(values.length - dimension);
  const sums = new Float64Array(dimension);
  values.forEach((value, position) => {
    sums[position % dimension] = (sums[position % dimension] ?? 0) + value;
  });
  const rows = Math.max(1, values.length / dimension);
  return Float32Array.from(sums, (sum) => sum / rows);
}
