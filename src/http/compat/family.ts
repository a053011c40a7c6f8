/** Owns what a family of routes that another service's clients expect is made of. */
import type { IncomingMessage } from 'node:http';
import type { ServiceError } from '../../errors.ts';
import type { TaskMethod } from '../../rpc/methods.ts';
import type { ResultOf, TaskRequest } from '../../rpc/task-request.ts';
import type { ServedFacts } from '../../rpc/served-facts.ts';
import type { Answer } from '../answer.ts';

/** One call of a compatible route. */
export interface CompatCall {
  readonly incoming: IncomingMessage;
  /** Parsed JSON; undefined for GET. */
  readonly body: unknown;
  /** The body as it was sent; empty for GET. */
  readonly bodyText: string;
  /** What stood in the place of `:name`, percent-decoded; null where the path has none. */
  readonly pathName: string | null;
  /**
   * Runs a task as RCP would: same queue, quotas, deadline, metrics and spans.
   * @throws ServiceError, and nothing else
   */
  run<M extends TaskRequest['method']>(request: Extract<TaskRequest, { readonly method: M }>): Promise<ResultOf<M>>;
  /** What is served: models, limits, tokenizers. */
  readonly served: ServedFacts;
  /** Aborts with a ServiceError as its reason when the caller left or the deadline passed. */
  readonly signal: AbortSignal;
}

/** What a call counts as in the metrics. */
export type CountedMethod = TaskMethod | 'tokenize' | 'decode';

/** A route of a family. */
export interface CompatRoute {
  readonly method: 'GET' | 'POST';
  /** As in the URL; `:name` stands for one segment and what is behind it. */
  readonly path: string;
  /** Whether a body is this family's, where several have the path; absent: any that nobody else takes. */
  readonly takes?: (body: unknown) => boolean;
  /** What a call counts as where no task that it ran was counted; absent: nothing, as what is only read. */
  readonly countsAs?: CountedMethod;
  /** Answers one call; a ServiceError becomes the family's error answer. */
  readonly answer: (call: CompatCall) => Promise<Answer> | Answer;
}

/** Routes of one service, and the shape of its errors. */
export interface CompatFamily {
  readonly name: 'openai' | 'cohere' | 'jina' | 'tei';
  readonly routes: readonly CompatRoute[];
  /** The answer that the service's clients understand; 401 and 429 (with Retry-After) among them. */
  readonly errorAnswer: (error: ServiceError) => Answer;
}
