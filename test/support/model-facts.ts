/** Owns the facts of models with nothing special about them, for tests that need a whole manifest or load. */
import type { ModelLoad } from '../../src/executor/protocol.ts';
import type { ModelManifest } from '../../src/model/manifest.ts';
import { plainTokenRows } from '../../src/model/token-row-rules.ts';
import type { VectorStep } from '../../src/model/vector-steps.ts';

/** The mean of the rows, scaled to length 1. */
export const meanSteps: readonly VectorStep[] = [{ kind: 'pool', modes: ['mean'] }, { kind: 'normalize' }];

/** What an executor is told of a model whose texts run one by one. */
export const plainLoad = {
  runPolicy: { kind: 'alone', fixedBatch: null, fixedTokens: null },
  positionPadId: null,
  sparse: null,
} as const satisfies Partial<ModelLoad>;

/** The facts of a model whose vectors and rows have `dimension` numbers and come from the encoder as they are. */
export const plainFacts = (dimension: number) =>
  ({
    dimension,
    rowDimension: dimension,
    vectorSteps: [],
    rowSteps: [],
    matryoshka: { dimensions: [], isCentered: false },
    includesPrompt: true,
    tokenRows: plainTokenRows,
    sparse: null,
    positiveLabel: null,
    yesNo: null,
    inputs: { names: ['input_ids', 'attention_mask', 'token_type_ids'], positionPadId: null },
    runPolicy: plainLoad.runPolicy,
  }) satisfies Partial<ModelManifest>;
