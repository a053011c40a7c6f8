/** Owns what may be said of a model's vectors and prompts to who has no part in running it. */
import type { ModelManifest, Prompts } from '../model/manifest.ts';

/** How a model's rows become its vector, and what goes before a text. */
export interface VectorFacts {
  readonly prompts: Prompts;
  /** Every prompt that callers may name. */
  readonly namedPrompts: Readonly<Record<string, string>>;
  /** Whether the model's vectors have length 1. */
  readonly isNormalized: boolean;
  /** The pooling of all rows that gives the vector up to its length; null where more happens to them or they are not known. */
  readonly plainPooling: 'cls' | 'mean' | 'lastToken' | null;
}

/** The facts of a model. */
export function vectorFactsOf(
  manifest: Pick<
    ModelManifest,
    'prompts' | 'namedPrompts' | 'isNormalized' | 'vectorSteps' | 'includesPrompt' | 'hiddenOutput'
  >,
): VectorFacts {
  const { prompts, namedPrompts = {}, isNormalized, vectorSteps, includesPrompt, hiddenOutput } = manifest;
  const [pool, ...others] = vectorSteps;
  const isPlain = hiddenOutput !== undefined && includesPrompt && others.every(({ kind }) => kind === 'normalize');
  const mode = pool?.kind === 'pool' && pool.modes.length === 1 ? pool.modes[0] : undefined;
  const plainPooling = mode === 'cls' || mode === 'mean' || mode === 'lastToken' ? mode : null;
  return { prompts, namedPrompts, isNormalized, plainPooling: isPlain ? plainPooling : null };
}
