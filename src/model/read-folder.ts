/** Owns the reading of one model folder in the Hugging Face layout. */
import { basename } from 'node:path';
import { ConfigurationError } from '../errors.ts';
import type { RunPolicy } from '../executor/protocol.ts';
import { readCatalogEntry, repositoryOf } from './catalog.ts';
import type { CatalogEntry } from './catalog.ts';
import { readStatedColbert } from './colbert-files.ts';
import type { StatedColbert } from './colbert-files.ts';
import { readFolderConfig } from './config-file.ts';
import { configProblems, labelProblem, lacksPooling } from './fit.ts';
import type { FitFacts } from './fit.ts';
import { gather, refuse } from './gather.ts';
import { graphProblems, showOutputs } from './graph-check.ts';
import { findGraphFile } from './graph-file.ts';
import type { GraphFile } from './graph-file.ts';
import { thisCpu } from './graph-variant.ts';
import type { DeviceAbilities } from './graph-variant.ts';
import { hiddenSource } from './head-source.ts';
import type { SourceFacts } from './head-source.ts';
import type { ModelManifest, Precision, Prompts } from './manifest.ts';
import { readModules } from './modules.ts';
import { pastInputs } from './past-inputs.ts';
import { readPipeline } from './pipeline.ts';
import { headsOf, misfits, roleOf } from './role.ts';
import type { ModelUse } from './role.ts';
import { runPolicyOf, runPolicyProblems } from './run-policy.ts';
import { readSelfChecks } from './self-check-file.ts';
import { smallestLimit } from './token-limit.ts';
import { tokenRowRules } from './token-row-rules.ts';
import type { TokenRowRules } from './token-row-rules.ts';

/** Digits of the sha256 that make the revision. */
const revisionDigits = 12;

/** What is known of a folder besides what lies in it. */
export interface FolderOptions {
  /** Name of the model in every table and message; without it, the folder's. */
  readonly modelId?: string;
  /** Repository that the folder is a copy of, the key of its catalogue entry; without it, by where the folder lies. */
  readonly repository?: string;
  /** Folder of the graph files, where they come from another repository. */
  readonly graphFolder?: string;
  /** Where the model will run; without it, on this machine's CPU. */
  readonly device?: DeviceAbilities;
}

/** A prompt of the catalogue goes before one of the files. */
const promptsOf = (file: Prompts, { prompts }: CatalogEntry): Prompts => ({
  query: prompts.query ?? file.query,
  document: prompts.document ?? file.document,
  unspecified: prompts.unspecified ?? file.unspecified,
});

/** Every prompt of the files, those of the catalogue for queries and documents in the place of the files'. */
const namedPromptsOf = (
  file: Readonly<Record<string, string>>,
  { prompts: { query, document } }: CatalogEntry,
): Record<string, string> => ({
  ...file,
  ...(query === undefined ? {} : { query }),
  ...(document === undefined ? {} : { document }),
});

function checkFit(facts: FitFacts, sources: SourceFacts, { path, graph }: GraphFile): void {
  const { modelId, role, uses, pipeline } = facts;
  const abilities = { hasTokenWeights: pipeline.sparse?.form === 'tokens', answersYesNo: pipeline.yesNo !== null };
  const wrongUses = misfits(modelId, role, abilities, uses, showOutputs(graph));
  // A model in the wrong place is one mistake: what its graph lacks for the right one is no news.
  if (wrongUses.length > 0) throw new ConfigurationError(wrongUses);
  // What nobody knows how to read is one problem, whatever the graph has.
  const unread = [...(lacksPooling(facts, graph) ? ['dense'] : []), ...(labelProblem(facts) === null ? [] : ['logit'])];
  const heads = headsOf(uses)
    .filter((head) => head !== 'maxSim')
    .filter((head) => !unread.includes(head));
  const wrongGraph = [...graphProblems(graph, heads, sources), ...runPolicyProblems(graph, runPolicyOf(graph))];
  refuse([...configProblems(facts, graph), ...wrongGraph.map((problem) => `${path}: ${problem}`)]);
}

/** What a folder's files say before its graph is looked at. */
async function readFiles(
  folder: string,
  { modelId = basename(folder), repository = repositoryOf(folder) }: FolderOptions,
) {
  const reads = [readFolderConfig(folder), readModules(folder), readCatalogEntry(folder, repository)] as const;
  await gather<unknown>(reads);
  const [config, modules, catalog] = await Promise.all(reads);
  const role = roleOf(config, modules);
  if (role === null) {
    throw new ConfigurationError([`${modelId}: architecture "${config.architecture}" is not supported`]);
  }
  return { modelId, role, config, modules, catalog };
}

/**
 * The most tokens of a text: the least that any file, the catalogue or the graph states. Late-interaction models state
 * lengths of their own, which count the marker and go before what the files say of the encoder.
 */
function maxTokensOf(
  { config, catalog, modules }: Awaited<ReturnType<typeof readFiles>>,
  { maxQueryTokens, maxDocumentTokens, minQueryTokens }: TokenRowRules,
  { fixedTokens }: RunPolicy,
): number {
  const own = maxDocumentTokens === null ? null : Math.max(maxDocumentTokens, maxQueryTokens ?? 0, minQueryTokens ?? 0);
  const stated = own === null ? config.maxTokens : (smallestLimit([own, config.maxPositions]) ?? own);
  return Math.min(...[catalog.maxTokens, modules.maxTokens, stated, fixedTokens].map((limit) => limit ?? Infinity));
}

/** What files, modules and the catalogue state about the rows; lengths of one kind leave the other its own limit. */
function tokenRowsOf(
  { modelId, config, catalog }: Awaited<ReturnType<typeof readFiles>>,
  colbert: StatedColbert | null,
): TokenRowRules {
  const rules = tokenRowRules(
    colbert?.rows ?? null,
    { ...catalog.rows, documentSkipTokens: catalog.documentSkipTokens },
    config.specialTokens,
  );
  const isUnfilled = colbert?.rows.expandsQueries === true && rules.expansionToken === null;
  refuse(isUnfilled ? [`${modelId}: its tokenizer has neither a mask nor a closing token to fill queries with`] : []);
  const { maxQueryTokens, maxDocumentTokens, minQueryTokens } = rules;
  const isPlain = [maxQueryTokens, maxDocumentTokens, minQueryTokens].every((length) => length === null);
  if (isPlain) return rules;
  const { maxTokens } = config;
  return {
    ...rules,
    maxQueryTokens: maxQueryTokens ?? maxTokens,
    maxDocumentTokens: maxDocumentTokens ?? maxTokens,
  };
}

/** What is wrong with a limit that the graph's table of positions does not reach; null where nothing is. */
function positionProblem(
  { modelId, config }: Awaited<ReturnType<typeof readFiles>>,
  { path, graph }: GraphFile,
  maxTokens: number,
): string | null {
  const rows = graph.tableRows.positions;
  // Without a stated length nothing says that the table is one of positions.
  if (rows === null || config.maxPositions === null) return null;
  const usable = config.positionPadId === null ? rows : rows - config.positionPadId - 1;
  if (maxTokens <= usable) return null;
  return (
    `${path}: its table of positions is for ${String(usable)} tokens, ` +
    `but the files of ${modelId} state a limit of ${String(maxTokens)}`
  );
}

/**
 * The manifest of the model in `folder` for these uses, known as `modelId`.
 * @throws ConfigurationError with everything that keeps it from being served
 */
export async function readModelFolder(
  folder: string,
  uses: readonly ModelUse[],
  precision: Precision | 'auto',
  options: FolderOptions = {},
): Promise<ModelManifest> {
  const { device = thisCpu, graphFolder = folder } = options;
  const files = await readFiles(folder, options);
  const { config, catalog, modules } = files;
  const heads = headsOf(uses);
  const reads = [
    findGraphFile(graphFolder, { wanted: precision, device }, catalog),
    readSelfChecks(folder, catalog.selfCheckFile, heads),
    readStatedColbert(folder, config.architecture, modules.mask),
  ] as const;
  await gather<unknown>(reads);
  const [file, selfChecks, colbert] = await Promise.all(reads);
  const { skipsFirstRow, ...pipeline } = await readPipeline({ ...files, folder, colbert, graph: file.graph });
  const sources = { ...pipeline, hiddenSize: config.hiddenSize, vocabularySize: config.vocabularySize };
  const facts: FitFacts = { ...files, uses, pipeline };
  checkFit(facts, sources, file);
  const tokenRows = tokenRowsOf(files, colbert);
  const dimensions =
    catalog.matryoshkaDimensions.length > 0 ? catalog.matryoshkaDimensions : config.matryoshkaDimensions;
  const past = pastInputs(file.graph).map(({ name }) => name);
  const runPolicy = runPolicyOf(file.graph);
  const maxTokens = maxTokensOf(files, tokenRows, runPolicy);
  const tooLong = positionProblem(files, file, maxTokens);
  refuse(tooLong === null ? [] : [tooLong]);
  const tokenTableRows = file.graph.tableRows.tokens;
  const hiddenOutput = uses.includes('embed') ? hiddenSource(file.graph, sources)?.name : undefined;
  return {
    ...sources,
    modelId: files.modelId,
    folder,
    graphPath: file.path,
    precision: file.precision,
    ...(file.conversions.length === 0 ? {} : { conversion: file.conversions }),
    revision: file.contentSha256.slice(0, revisionDigits),
    sha256: file.sha256,
    maxTokens,
    ...(tokenTableRows === null ? {} : { tokenTableRows }),
    isMatryoshka: catalog.isMatryoshka || dimensions.length > 0,
    matryoshka: { dimensions, isCentered: catalog.isCenteredBeforeCut },
    prompts: promptsOf(config.prompts, catalog),
    namedPrompts: namedPromptsOf(config.namedPrompts, catalog),
    includesPrompt: modules.includesPrompt,
    tokenRows: { ...tokenRows, keepsFirstRow: !skipsFirstRow },
    scoreActivation: 'sigmoid',
    inputs: {
      names: file.graph.inputs.map(({ name }) => name).filter((name) => !past.includes(name)),
      positionPadId: config.positionPadId,
    },
    runPolicy,
    heads,
    ...(hiddenOutput === undefined ? {} : { hiddenOutput }),
    selfChecks,
  };
}
