/** Owns the self-check file of a model: what the reference implementation gives for a few ids. */
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.ts';
import type { AddedHead } from '../executor/protocol.ts';
import { readOptionalJson } from './json-file.ts';
import type { SelfCheck } from './manifest.ts';

const cosineSchema = z.number().min(0).max(1);
const checkSchema = z.object({
  head: z.enum(['dense', 'sparse', 'rows', 'logit', 'maxSim']),
  ids: z.array(z.int().nonnegative()).min(1),
  expected: z.object({ values: z.array(z.number()).min(1), indices: z.array(z.int().nonnegative()).nullable() }),
  minCosine: z.object({ int8: cosineSchema, fp16: cosineSchema, fp32: cosineSchema }),
});
const fileSchema = z.object({ checks: z.array(checkSchema) });

/** Name of the self-check file where the catalogue gives no other. */
export const defaultSelfCheckFile = 'self-check.json';

/**
 * The checks for the heads in use; none where the model has no such file and the catalogue promises none.
 * @throws ConfigurationError
 */
export async function readSelfChecks(
  folder: string,
  promisedFile: string | null,
  heads: readonly AddedHead[],
): Promise<SelfCheck[]> {
  const path = join(folder, promisedFile ?? defaultSelfCheckFile);
  const file = await readOptionalJson(path, fileSchema);
  if (file === null && promisedFile !== null) throw new ConfigurationError([`${path}: is missing`]);
  return (file?.checks ?? []).filter(({ head }) => heads.includes(head));
}
