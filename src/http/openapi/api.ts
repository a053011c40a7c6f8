/** Owns what the description is made from, and what one described route is. */
import type { ServedFacts } from '../../rpc/served-facts.ts';
import type { TaskMethod } from '../../rpc/methods.ts';
import type { TokenIdRule } from '../compat/openai.ts';
import type { Schema } from './schema.ts';

/** What is configured, as far as callers meet it. */
export interface ApiFacts {
  readonly served: ServedFacts;
  /** In the order of `info`. */
  readonly rerankMethods: readonly string[];
  readonly limits: { readonly bodyLimitBytes: number; readonly maxBatchMembers: number };
  readonly hasKey: boolean;
  readonly isMetricsOpen: boolean;
  readonly hasConsole: boolean;
  readonly openaiTokenIds: TokenIdRule;
}

/** Requests by what they show; every one is answered with 200. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

/** What is sent. */
export interface DescribedBody {
  readonly schema: Schema;
  readonly examples: Examples;
}

/** One answer. */
export interface DescribedAnswer {
  readonly description: string;
  /** By name, as sent. */
  readonly headers?: Readonly<Record<string, Schema>>;
  /** By content type; absent: nothing is sent. */
  readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
}

/** One method at one path. */
export interface Operation {
  readonly method: 'get' | 'post';
  /** With `{name}` where a name stands. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly needsKey: boolean;
  readonly body?: DescribedBody;
  readonly pathName?: { readonly name: string; readonly description: string };
  /** By status. */
  readonly answers: Readonly<Record<string, DescribedAnswer>>;
}

/** What is said of one route. */
export interface RouteWords {
  readonly summary: string;
  readonly description: string;
  /** Absent: what is only read. */
  readonly body?: DescribedBody;
  readonly answer: { readonly description: string; readonly schema: Schema };
  /** The method of the models that it needs; null: it needs none. */
  readonly task: TaskMethod | null;
  readonly pathName?: string;
}

/** What is said of a family: its routes by method and path, and the shape of its errors. */
export interface FamilyWords {
  readonly tag: string;
  readonly error: string;
  readonly routes: Readonly<Record<`${'GET' | 'POST'} ${string}`, RouteWords>>;
}

/** An answer in JSON. */
export const jsonAnswer = (description: string, schema: Schema): DescribedAnswer => ({
  description,
  content: { 'application/json': { schema } },
});

/** An answer without a body. */
export const emptyAnswer = (description: string): DescribedAnswer => ({ description });

/**
 * Names of the models that serve a method; none where a key is set: who has no key reads the description too, and the
 * lists of models need it.
 */
export const modelNamesOf = ({ served, hasKey }: ApiFacts, method: TaskMethod): readonly string[] =>
  hasKey ? [] : served.models.filter(({ methods }) => methods.includes(method)).map(({ model }) => model);

/** True where a model serves the method. */
export const isServed = ({ served }: ApiFacts, method: TaskMethod): boolean =>
  served.models.some(({ methods }) => methods.includes(method));
