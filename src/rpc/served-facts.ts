/** Owns what other protocols may ask about what is served, beside running it. */
import type { ServedModel, ServedTasks } from '../task/context.ts';
import { decodeIds, tokenizeDetails, type TextsToDetail, type TokenDetail } from '../task/token-details.ts';
import { vectorFactsOf, type VectorFacts } from '../task/vector-facts.ts';
import { ServiceError } from '../errors.ts';
import { vendorKey } from './capabilities.ts';
import { chooseModel } from './choose-model.ts';
import type { TaskMethod } from './methods.ts';

export type { TextsToDetail, TokenDetail };

/** Texts whose tokens are asked for, and whose they are to be. */
export interface TokensAsked extends TextsToDetail {
  /** Name of the model; absent or null: the first one. */
  readonly model?: string | null;
}

/** A model as a listing shows it. */
export interface ModelFacts {
  readonly model: string;
  readonly identity: string;
  readonly revision: string | null;
  readonly precision: string;
  readonly methods: readonly TaskMethod[];
  readonly maxInputTokens: number;
  /** Length of its vectors (embed); null where it gives none. */
  readonly dimension: number | null;
  readonly pooling: string | null;
  /** As `vectorFactsOf` says them. */
  readonly vectors: VectorFacts;
}

/** What a name that is none of a served model means: the first model of its task, or a fault. */
export type ModelNames = 'any' | 'served';

/** What is served. */
export interface ServedFacts {
  readonly models: readonly ModelFacts[];
  readonly modelNames: ModelNames;
  readonly limits: {
    readonly batchLimit: number;
    readonly maxCandidates: number;
    readonly deadlineMs: number;
    /** The settings of the same names. */
    readonly maxBatchTokens: number;
    readonly maxBatchItems: number;
    readonly maxQueuedItems: number;
  };
  /** Name and version of the server. */
  readonly server: { readonly name: string; readonly version: string };
  /**
   * What `use` makes of the tokens of each text as the named model, else the first that serves `embed`, else the first
   * of any method, reads them, untruncated. They may be many: large calls wait for each other until `use` has ended.
   * @throws invalidParams where a text is over the bound of one tokenising; unsupportedOption, field `x-trivec.model`;
   * overloaded; the signal's reason
   */
  tokenize<T>(
    asked: TokensAsked,
    signal: AbortSignal,
    use: (tokens: readonly TokenDetail[][]) => Promise<T>,
  ): Promise<T>;
  /**
   * The text of each list of ids of the named model, else of the one that `tokenize` asks.
   * @throws invalidParams where an id is no token of the model, field `ids[i]`; unsupportedOption, field
   * `x-trivec.model`; overloaded; the signal's reason
   */
  decode(
    ids: readonly (readonly number[])[],
    skipsSpecialTokens: boolean,
    signal: AbortSignal,
    model?: string | null,
  ): Promise<string[]>;
}

/** The facts of what is configured; they stay the same for the life of the process. */
export function createServedFacts(
  tasks: ServedTasks,
  rest: Pick<ServedFacts, 'limits' | 'server' | 'modelNames'>,
): ServedFacts {
  const { batchLimit, maxCandidates, deadlineMs, maxBatchTokens, maxBatchItems, maxQueuedItems } = rest.limits;
  const uses = usesOf(tasks);
  const models = [...new Map(uses.map(({ served }) => [served.manifest.modelId, served])).values()];
  const teller = (model: string | null = null): ServedModel => {
    if (models.length === 0) throw new ServiceError('capabilityNotAdvertised', 'This server has no model');
    return chooseModel(models, model, `${vendorKey}.model`);
  };
  return {
    ...rest,
    // What is given may hold more than may be told: all settings, keys among them.
    limits: { batchLimit, maxCandidates, deadlineMs, maxBatchTokens, maxBatchItems, maxQueuedItems },
    models: modelFactsOf(uses),
    tokenize: async (asked, signal, use) => tokenizeDetails(teller(asked.model), asked, signal, use),
    decode: async (ids, skipsSpecialTokens, signal, model) => decodeIds(teller(model), ids, skipsSpecialTokens, signal),
  };
}

interface ModelUse {
  readonly method: TaskMethod;
  readonly served: ServedModel;
}

/** Each model with each of its methods, in the order of the settings. */
function usesOf({ embed, sparseEmbed, multiVector, rerankers }: ServedTasks): ModelUse[] {
  const of = (method: TaskMethod, models: readonly ServedModel[]) => models.map((served) => ({ method, served }));
  const ranking = rerankers.map(({ served }) => served);
  return [
    ...of('embed', embed),
    ...of('embed/sparse', sparseEmbed),
    ...of('embed/multi', multiVector),
    ...of('rerank', ranking),
  ];
}

/** A model that serves several methods is listed once, under the identity of the first. */
function modelFactsOf(uses: readonly ModelUse[]): ModelFacts[] {
  const names = new Set(uses.map(({ served }) => served.manifest.modelId));
  return [...names].flatMap((model) => {
    const ofModel = uses.filter(({ served }) => served.manifest.modelId === model);
    const [first] = ofModel;
    if (first === undefined) return [];
    const { manifest, identity } = first.served;
    const { revision, precision, maxTokens, dimension, pooling } = manifest;
    return {
      model,
      identity,
      revision,
      precision,
      methods: [...new Set(ofModel.map(({ method }) => method))],
      maxInputTokens: maxTokens,
      dimension: dimension === 0 ? null : dimension,
      pooling,
      vectors: vectorFactsOf(manifest),
    };
  });
}
