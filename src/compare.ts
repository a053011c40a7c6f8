/** Owns the measuring of a model's int8 form against its float32 form on this machine. */
import { stat } from 'node:fs/promises';
import { systemClock } from './clock.ts';
import { forkExecutor } from './device/channel.ts';
import { openConversation, type Conversation } from './device/conversation.ts';
import { defaultDeviceLimits } from './device/limits.ts';
import { ConfigurationError } from './errors.ts';
import type { Head, ModelLoad, RunItem, RunRow } from './executor/protocol.ts';
import { quantizedManifest } from './model/convert/quantized-manifest.ts';
import { sampleTexts } from './model/convert/sample-texts.ts';
import type { ModelManifest } from './model/manifest.ts';
import { prepareModels, prepareQuantized } from './model/prepare.ts';
import { readModelFolder } from './model/read-folder.ts';
import type { FolderOptions } from './model/read-folder.ts';
import type { ModelUse } from './model/role.ts';
import { toRunItem } from './task/run-texts.ts';
import { cosine, sparseCosine } from './tensor/cosine.ts';
import { loadTokenizer } from './tokenize/load.ts';

/** How alike the values of two forms are. */
export interface Likeness {
  /** What was compared: cosines of vectors, or the differences of logits, where the least is the largest difference. */
  readonly measure: 'cosine' | 'difference';
  readonly head: Head;
  readonly worst: number;
  readonly mean: number;
  readonly texts: number;
}

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
const candidates: readonly { readonly use: ModelUse; readonly head: Exclude<Head, 'maxSim'> }[] = [
  { use: 'embed', head: 'dense' },
  { use: 'sparseEmbed', head: 'sparse' },
  { use: 'rerank', head: 'logit' },
  { use: 'multiVector', head: 'rows' },
];

interface Comparable {
  readonly manifest: ModelManifest;
  readonly head: Exclude<Head, 'maxSim'>;
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
  if (head !== 'logit') return (await tokenizer.tokenize(sampleTexts)).map((text) => toRunItem(text, null));
  const [query = '', ...passages] = sampleTexts;
  return (await tokenizer.tokenizePairs(query, passages)).map((text) => toRunItem(text, null));
}

interface Measured {
  readonly rows: readonly RunRow[];
  /** @unit ms */
  readonly computeMs: number;
}

/** Runs every item alone, once to warm up and once for the clock. */
async function measure(conversation: Conversation, load: ModelLoad, head: Head, items: RunItem[]): Promise<Measured> {
  await conversation.load([load], 1);
  const rows: RunRow[] = [];
  let computeMs = 0;
  for (const isTimed of [false, true]) {
    for (const item of items) {
      const result = await conversation.run({ modelId: load.modelId, head, items: [item], queryRows: null });
      if (!isTimed) continue;
      rows.push(...result.rows);
      computeMs += result.computeMs;
    }
  }
  return { rows, computeMs };
}

async function measureIn(entry: string, load: ModelLoad, head: Head, items: RunItem[]): Promise<Measured> {
  const channel = forkExecutor(entry)('quantize');
  const limits = defaultDeviceLimits;
  const conversation = openConversation({ channel, clock: systemClock, limits, onGone: () => undefined });
  try {
    return await measure(conversation, load, head, items);
  } finally {
    conversation.end('the measurement is over');
  }
}

function likenessOf(one: RunRow, other: RunRow, head: Head): number {
  if (head === 'logit') return Math.abs((one.values[0] ?? NaN) - (other.values[0] ?? NaN));
  if (one.indices === null || other.indices === null) return cosine(one.values, other.values);
  return sparseCosine({ indices: one.indices, values: one.values }, { indices: other.indices, values: other.values });
}

function compareRows(fp32: readonly RunRow[], int8: readonly RunRow[], head: Head): Likeness {
  const values = fp32.map((row, index) => likenessOf(row, int8[index] ?? row, head));
  const measureName = head === 'logit' ? 'difference' : 'cosine';
  const worst = measureName === 'difference' ? Math.max(...values) : Math.min(...values);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { measure: measureName, head, worst, mean, texts: values.length };
}

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
  const fp32 = await measureIn(executorEntry, fp32Load, head, items);
  const int8 = await measureIn(executorEntry, int8Load, head, items);
  const sizeOf = async (load: ModelLoad): Promise<number> => (await stat(load.graphPath)).size;
  return {
    path,
    bytes: { fp32: await sizeOf(fp32Load), int8: await sizeOf(int8Load) },
    likeness: compareRows(fp32.rows, int8.rows, head),
    speed: fp32.computeMs / int8.computeMs,
  };
}
