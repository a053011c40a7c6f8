/** Owns what a model serves for the sample texts, head by head, and how each value comes from an output of its graph. */
import { ConfigurationError } from '../errors.ts';
import type { RunRow } from '../executor/protocol.ts';
import { describeConverted } from '../model/convert/describe.ts';
import { sampleTexts } from '../model/convert/sample-texts.ts';
import { headTensors } from '../model/head-needs.ts';
import { headSource } from '../model/head-source.ts';
import { inspectModel } from '../model/inspect.ts';
import type { ModelManifest, Precision } from '../model/manifest.ts';
import { prepareModels } from '../model/prepare.ts';
import { readModelFolder } from '../model/read-folder.ts';
import type { FolderOptions } from '../model/read-folder.ts';
import { readTensors } from '../model/weights/tensor-file.ts';
import { loadTokenizer } from '../tokenize/load.ts';
import { withExecutor } from './executor-run.ts';
import type { HeadRecipe } from './expected-row.ts';
import { samplesOf } from './samples.ts';
import type { Sample } from './samples.ts';

/** Sample texts that are compared. */
const maxTexts = 8;

/** A model to be verified. */
export interface VerifySource {
  readonly folder: string;
  readonly options: FolderOptions & { readonly modelId: string };
  readonly precision: Precision | 'auto';
  readonly cacheDir: string;
  /** Compiled entries of the processes that run the model. */
  readonly entries: { readonly executor: string; readonly reference: string };
}

/** A head with its texts, and what was served for them. */
export interface ServedHead {
  readonly recipe: HeadRecipe;
  /** Whether the graph ends in a Sigmoid: it gives a score where the head gives the logit. */
  readonly givesScore: boolean;
  readonly samples: readonly Sample[];
  /** One for each sample. */
  readonly rows: readonly RunRow[];
}

/**
 * The model for every use that it has.
 * @throws ConfigurationError where it has none
 */
export async function readManifest({ folder, options, precision }: VerifySource): Promise<ModelManifest> {
  const { serves, problems } = await inspectModel(folder, options.modelId, options);
  if (serves.length === 0) throw new ConfigurationError(problems);
  return readModelFolder(folder, serves, precision, options);
}

async function recipesOf(manifest: ModelManifest): Promise<Pick<ServedHead, 'recipe' | 'givesScore'>[]> {
  // Of the file as it is: that is what transformers.js runs.
  const graph = describeConverted(manifest.graphPath, []);
  const tensors = await readTensors(headTensors(manifest));
  return manifest.heads.flatMap((head) => {
    const source = head === 'maxSim' ? null : headSource(graph, head, manifest);
    if (head === 'maxSim' || source === null) return [];
    const givesScore = head === 'logit' && graph.sigmoidInputs.has(source.output.name);
    return [{ recipe: { head, source, facts: manifest, tensors }, givesScore }];
  });
}

/**
 * What every head gives in an executor on the CPU.
 * @throws ConfigurationError where the model cannot be prepared
 */
export async function serveHeads(
  manifest: ModelManifest,
  { cacheDir, entries }: Pick<VerifySource, 'cacheDir' | 'entries'>,
): Promise<ServedHead[]> {
  const { folder: modelFolder, maxTokens } = manifest;
  const [load] = await prepareModels([manifest], cacheDir);
  if (load === undefined) throw new Error('the model was not prepared');
  const tokenizer = await loadTokenizer({ modelFolder, maxTokens, warn: () => undefined });
  const recipes = await recipesOf(manifest);
  return withExecutor(entries.executor, load, async (runAlone) => {
    const served: ServedHead[] = [];
    for (const { recipe, givesScore } of recipes) {
      const samples = await samplesOf(manifest, tokenizer, recipe.head, sampleTexts.slice(0, maxTexts));
      const items = samples.map(({ item }) => item);
      const { rows } = await runAlone(recipe.head, items);
      served.push({ recipe, givesScore, samples, rows });
    }
    return served;
  });
}
