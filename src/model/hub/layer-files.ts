/** Owns when a server needs weights of the encoder's own file: for a layer that a graph ends before. */
import { z } from 'zod';
import type { GraphDescription } from '../../kernels/onnx/read.ts';
import { originalColbert } from '../colbert-files.ts';
import { readJson } from '../json-file.ts';
import type { HubFile } from './file-hash.ts';

const configSchema = z.object({
  architectures: z.array(z.string()).nullish(),
  hidden_size: z.int().positive().optional(),
});

/** The file in which the original ColBERT keeps its layer, among all other weights. */
const weightPath = 'model.safetensors';

/** Whether a graph gives the encoder's rows as they are. */
const endsAtEncoder = ({ outputs }: GraphDescription, hiddenSize: number): boolean =>
  outputs.every(({ shape }) => shape?.length !== 3 || shape[2] === hiddenSize);

/**
 * The weights that a late-interaction model needs besides its graphs; nothing where a graph has its layer.
 * @throws ConfigurationError where the configuration cannot be read
 */
export async function layerFilesOf(
  files: readonly HubFile[],
  configPath: string,
  graphs: readonly GraphDescription[],
): Promise<HubFile[]> {
  const { architectures, hidden_size: hiddenSize = 0 } = await readJson(configPath, configSchema);
  if (architectures?.includes(originalColbert) !== true) return [];
  const isNeeded = graphs.some((graph) => endsAtEncoder(graph, hiddenSize));
  return isNeeded ? files.filter(({ path }) => path === weightPath) : [];
}
