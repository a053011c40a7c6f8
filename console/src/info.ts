/** Owns what the page reads of `info`. */

/** How the rows of an uncut text follow from its tokens. */
export interface RowTokens {
  /** Token put behind the first one. */
  readonly markerId?: number;
  /** Token that fills the text up to the rows that there are. */
  readonly fillId?: number;
  /** Tokens without a row. */
  readonly skippedIds: readonly number[];
  readonly keepsFirstRow: boolean;
}

/** A model as `info` lists it. */
export interface ModelInfo {
  readonly id: string;
  readonly identity: string;
  readonly maxInputTokens: number;
  readonly dimension?: number;
  readonly method?: string;
  readonly maxQueryTokens?: number;
  /** Only where rows follow from the tokens of the text alone. */
  readonly rowTokens?: Readonly<Record<'query' | 'document', RowTokens>>;
}

/** A device as `info` lists it. */
export interface DeviceInfo {
  readonly id: string;
  readonly executionProvider: string;
  readonly name: string;
  readonly precision: string;
  readonly state: string;
  readonly serves: readonly string[];
}

/** Names of the tasks, as capabilities and as lists of models. */
export type TaskName = 'embed' | 'sparseEmbed' | 'multiVector' | 'rerank';

/** The result of `info`. */
export interface Info {
  readonly server: { readonly name: string; readonly version: string };
  readonly protocolVersion: number;
  readonly capabilities: {
    readonly [task in TaskName]?: Readonly<Record<string, unknown>>;
  };
  readonly 'x-trivec': {
    readonly devices: readonly DeviceInfo[];
    readonly unusedDevices: readonly { readonly id: string; readonly reason: string }[];
    readonly models: Readonly<Record<TaskName, readonly ModelInfo[]>>;
    readonly limits: Readonly<Record<string, number>>;
    readonly options: readonly string[];
  };
}

/** The methods by which a server ranks, its default first. */
export const rerankMethodsOf = ({ capabilities }: Info): string[] => {
  const methods = capabilities.rerank?.['methods'];
  return Array.isArray(methods) ? methods.map(String) : [];
};

/** Most texts of a call. */
export const batchLimitOf = ({ capabilities }: Info, task: TaskName): number =>
  Number(capabilities[task]?.['batchLimit'] ?? Infinity);
