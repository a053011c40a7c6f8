/** Owns the measuring of a model's int8 form against its float32 form on this machine. */
import { stat } from 'node:fs/promises';
import { ConfigurationError } from './errors.ts';
import type { Head, ModelLoad, RunItem } from './executor/protocol.ts';
import { quantizedManifest } from './model/convert/quantized-manifest.ts';
import { sampleTexts } from './model/convert/sample-texts.ts';
import type { GraphHead } from './model/head-source.ts';
import type { ModelManifest } from './model/manifest.ts';
import { prepareModels, prepareQuantized } from './model/prepare.ts';
import { readModelFolder } from './model/read-folder.ts';
import type { FolderOptions } from './model/read-folder.ts';
import type { ModelUse } from './model/role.ts';
import { loadTokenizer } from './tokenize/load.ts';
import { withExecutor } from './verify/executor-run.ts';
import type { Pass } from './verify/executor-run.ts';
import { compareRows } from './verify/likeness.ts';
import type { Likeness } from './verify/likeness.ts';
import { samplesOf } from './verify/samples.ts';

/** What quantising a model gave. */
export interface QuantizeReport {
  /** The int8 graph, without heads. */
  readonly path: string;
  /** Size of the graph with its heads. @unit bytes */
  readonly bytes: { readonly fp32: number; readonly int8: number };
  readonly likeness: Likeness;
  /** How many times as fast int8 is, on one thread. */
  readonly speed: number;
}

/** Uses that a model may have, with the head that shows its values. */
const candidates: readonly { readonly use: ModelUse; readonly head: GraphHead }[] = [
  { use: 'embed', head: 'dense' },
  { use: 'sparseEmbed', head: 'sparse' },
  { use: 'rerank', head: 'logit' },
  { use: 'multiVector', head: 'rows' },
];

interface Comparable {
  readonly manifest: ModelManifest;
  readonly head: GraphHead;
}

/** The model in float32, for the first use that it has. */
async function readFloat32(folder: string, options: FolderOptions): Promise<Comparable> {
  let first: ConfigurationError | null = null;
  for (const { use, head } of candidates) {
    try {
      return { manifest: await readModelFolder(folder, [use], 'fp32', options), head };
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      first ??= error;
    }
  }
  throw first ?? new Error('no use was tried');
}

async function itemsOf({ manifest, head }: Comparable): Promise<RunItem[]> {
  const { folder: modelFolder, maxTokens } = manifest;
  const tokenizer = await loadTokenizer({ modelFolder, maxTokens, warn: () => undefined });
  return (await samplesOf(manifest, tokenizer, head, sampleTexts)).map(({ item }) => item);
}

/** A pass for the clock, after one to warm up. */
const measure = (entry: string, load: ModelLoad, head: Head, items: readonly RunItem[]): Promise<Pass> =>
  withExecutor(entry, load, async (runAlone) => {
    await runAlone(head, items);
    return runAlone(head, items);
  });

/**
 * Makes the int8 form of the model in `folder`, unless it is in the cache, and measures it against float32.
 * @throws ConfigurationError where the model cannot be read, converted or written
 */
export async function quantizeAndCompare(
  folder: string,
  cacheDir: string,
  executorEntry: string,
  options: FolderOptions = {},
): Promise<QuantizeReport> {
  const { manifest, head } = await readFloat32(folder, options);
  const quantized = quantizedManifest(manifest);
  const path = await prepareQuantized(quantized, cacheDir);
  const [fp32Load, int8Load] = await prepareModels([manifest, quantized], cacheDir);
  if (fp32Load === undefined || int8Load === undefined) throw new Error('a model was not prepared');
  const items = await itemsOf({ manifest, head });
  const fp32 = await measure(executorEntry, fp32Load, head, items);
  const int8 = await measure(executorEntry, int8Load, head, items);
  const sizeOf = async (load: ModelLoad): Promise<number> => (await stat(load.graphPath)).size;
  return {
    path,
    bytes: { fp32: await sizeOf(fp32Load), int8: await sizeOf(int8Load) },
    likeness: compareRows(fp32.rows, int8.rows, head),
    speed: fp32.computeMs / int8.computeMs,
  };
}
