/** Owns which files of a repository a server needs. */
import { posix } from 'node:path';
import { ConfigurationError } from '../../errors.ts';
import { graphCandidates } from '../graph-file.ts';
import type { Precision } from '../manifest.ts';
import type { HubFile } from './file-hash.ts';
import { isInsidePath } from './listing.ts';
import type { Repository } from './repository.ts';
import { showRepository } from './repository.ts';

/** Weights to get: those of one precision, the preferred ones, or all that can be served. */
export type WantedPrecision = Precision | 'auto' | 'all';

/** Files beside the graphs, at the top of a repository. */
const describingFiles: readonly RegExp[] = [
  /^config(_[\w-]+)?\.json$/u,
  /^modules\.json$/u,
  /^sentence_[\w-]+\.json$/u,
  /^tokenizer(_config)?\.json$/u,
  /^(special_tokens_map|added_tokens|vocab|chat_template)\.json$/u,
  /^vocab\.txt$/u,
  /^merges\.txt$/u,
  /^(sentencepiece\.bpe|spiece|tokenizer|spm)\.model$/u,
  /^chat_template\.jinja$/u,
  /^self-check\.json$/u,
  /^LICENSE(\.\w+)?$/u,
];

/** Folders of sentence-transformers' modules, with their settings and weights; `.bin` and `.pt` are pickles. */
const moduleFile = /^((query|document)_)?\d+_\w+\/[\w-]+\.(json|safetensors)$/u;

/** Settings and tokenizer files of a repository, never anything that is code or a pickle. */
export function describingFilesOf(files: readonly HubFile[]): HubFile[] {
  return files.filter(({ path }) => moduleFile.test(path) || describingFiles.some((pattern) => pattern.test(path)));
}

/**
 * The graph files of the wanted precision, the preferred one first.
 * @throws ConfigurationError that says what there is instead
 */
export function graphFilesOf(files: readonly HubFile[], repository: Repository, wanted: WantedPrecision): HubFile[] {
  const isWanted = (precision: Precision): boolean => ['auto', 'all', precision].includes(wanted);
  const found = graphCandidates
    .filter(({ precision }) => isWanted(precision))
    .flatMap((candidate) => files.filter(({ path }) => path === candidate.path));
  if (found.length > 0) return wanted === 'all' ? found : found.slice(0, 1);
  const others = files.filter(({ path }) => path.endsWith('.onnx')).map(({ path }) => path);
  const known = graphCandidates.filter(({ precision }) => isWanted(precision)).map(({ path }) => path);
  throw new ConfigurationError([
    `${showRepository(repository)}: has no ${known.join(' or ')}; ` +
      (others.length === 0 ? 'it has no ONNX file at all' : `its ONNX files are ${others.join(', ')}`),
  ]);
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
