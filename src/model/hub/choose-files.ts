/** Owns which files of a repository a server needs. */
import { posix } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { planPrecision } from '../convert/plan.ts';
import { possibleVariants } from '../graph-variant.ts';
import type { DeviceAbilities } from '../graph-variant.ts';
import type { Precision } from '../manifest.ts';
import type { HubFile } from './file-hash.ts';
import { isInsidePath } from './listing.ts';

/** Weights to get: those of one precision, the preferred ones, or all that can be served. */
export type WantedPrecision = Precision | 'auto' | 'all';

/** Files beside the graphs, at the top of a repository. */
const describingFiles: readonly RegExp[] = [
  /^config(_[\w-]+)?\.json$/u,
  /^(modules|router_config)\.json$/u,
  /^sentence_[\w-]+\.json$/u,
  /^tokenizer(_config)?\.json$/u,
  /^(special_tokens_map|added_tokens|vocab|chat_template)\.json$/u,
  /^vocab\.txt$/u,
  /^merges\.txt$/u,
  /^(sentencepiece\.bpe|spiece|tokenizer|spm)\.model$/u,
  /^chat_template\.jinja$/u,
  /^self-check\.json$/u,
  // What the original ColBERT states, and the layers that models in the form of bge-m3 keep beside their encoder.
  /^artifact\.metadata$/u,
  /^(sparse|colbert)_linear\.(safetensors|pt)$/u,
  /^LICENSE(\.\w+)?$/u,
];

/** Folders of sentence-transformers' modules, with their settings and weights; `.bin` files are pickles. */
const moduleFile = /^((query|document)_)?\d+_\w+\/[\w-]+\.(json|safetensors)$/u;

/** Settings, tokenizer and small layers of a repository, never anything that holds code to run. */
export function describingFilesOf(files: readonly HubFile[]): HubFile[] {
  return files.filter(({ path }) => moduleFile.test(path) || describingFiles.some((pattern) => pattern.test(path)));
}

/** What a graph file of a repository is chosen by. */
export interface FileChoice {
  readonly wanted: WantedPrecision;
  readonly device: DeviceAbilities;
  /** The float32 graph file, where its name is not one that is looked for. */
  readonly ownPath: string | null;
}

/** The graph files to get, or the reason why there are none. */
export type GraphFiles = { readonly graphs: readonly HubFile[] } | { readonly problem: string };

/** The graph file that the wanted precision is served from, whatever is done to it first; or all that can be served. */
export function graphFilesOf(files: readonly HubFile[], { wanted, device, ownPath }: FileChoice): GraphFiles {
  const found = possibleVariants(ownPath, device.arch).flatMap((variant) =>
    files.filter(({ path }) => path === variant.path).map((file) => ({ ...variant, file })),
  );
  if (wanted === 'all') {
    const graphs = found.filter(({ precision }) => precision !== '4bit').map(({ file }) => file);
    if (graphs.length > 0) return { graphs };
  }
  const plan = planPrecision(found, wanted === 'all' ? 'auto' : wanted, device);
  if (!('problem' in plan)) {
    return { graphs: found.filter(({ path }) => path === plan.variant.path).map(({ file }) => file) };
  }
  const others = files.filter(({ path }) => path.endsWith('.onnx')).map(({ path }) => path);
  const has = others.length === 0 ? 'it has no ONNX file at all' : `its ONNX files are ${others.join(', ')}`;
  return { problem: `${plan.problem}; ${has}` };
}

/** Weight files that go with a graph file by their name, as exporters write it. */
export function companionsByName(files: readonly HubFile[], graph: HubFile): HubFile[] {
  const suffixes = [/^_data(_\d+)?$/u, /^\.data(_\d+)?$/u];
  const isCompanion = ({ path }: HubFile): boolean =>
    path.startsWith(graph.path) && suffixes.some((suffix) => suffix.test(path.slice(graph.path.length)));
  return files.filter(isCompanion);
}

/**
 * Weight files that a graph names, relative to itself.
 * @throws ConfigurationError where the repository lacks one
 */
export function companionsByReference(
  files: readonly HubFile[],
  graph: HubFile,
  references: readonly string[],
): HubFile[] {
  return references.map((reference) => {
    const path = posix.join(posix.dirname(graph.path), reference);
    const file = isInsidePath(reference) ? files.find((candidate) => candidate.path === path) : undefined;
    if (file === undefined) {
      throw new ConfigurationError([
        `${graph.path}: keeps its weights in ${reference}, which the repository does not have`,
      ]);
    }
    return file;
  });
}
