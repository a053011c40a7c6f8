/** Owns how the report on one model is shown to a person. */
import { describeConversion } from '../model/conversion-text.ts';
import { showBytes } from '../model/hub/progress.ts';
import type { ChosenGraph, GraphReport, ModelReport, ServingReport } from '../model/inspect.ts';
import type { VectorStep } from '../model/vector-steps.ts';
import { showTable } from './model-tables.ts';

function showStep(step: VectorStep): string {
  switch (step.kind) {
    case 'pool':
      return `${step.modes.join(' + ')} pooling`;
    case 'dense': {
      const activation = step.activation === 'identity' ? '' : ` ${step.activation}`;
      return `dense ${String(step.inFeatures)} to ${String(step.outFeatures)}${activation}`;
    }
    case 'layerNorm':
      return 'layer norm';
    case 'normalize':
      return 'normalize';
  }
}

const showSteps = (steps: readonly VectorStep[]): string => steps.map(showStep).join(', ');

function showPolicy({ runPolicy: { kind, fixedBatch, fixedTokens } }: ServingReport): string {
  const kinds = {
    alone: 'one text at a time',
    equalLength: 'texts of one length together',
    padded: 'any texts together, padded',
  };
  return [
    kinds[kind],
    ...(fixedBatch === null ? [] : [`exactly ${String(fixedBatch)} a run`]),
    ...(fixedTokens === null ? [] : [`exactly ${String(fixedTokens)} tokens each`]),
  ].join(', ');
}

function showMatryoshka({ matryoshka: { dimensions, isCentered } }: ServingReport): string {
  return `${dimensions.join(', ')}${isCentered ? ', centered before the cut' : ''}`;
}

function servingRows(serving: ServingReport, serves: ModelReport['serves']): string[][] {
  const { prompts, vectorSteps, rowSteps, tokenRows, maxTokens } = serving;
  const { maxQueryTokens, maxDocumentTokens } = tokenRows;
  const limits = [
    `${String(maxTokens)} tokens`,
    ...(maxQueryTokens === null ? [] : [`queries ${String(maxQueryTokens)}`]),
    ...(maxDocumentTokens === null ? [] : [`documents ${String(maxDocumentTokens)}`]),
  ];
  const vector = [showSteps(vectorSteps) || 'by the graph', `${String(serving.dimension)} long`];
  const rows = [...(rowSteps.length > 0 ? [showSteps(rowSteps)] : []), `${String(serving.rowDimension)} long`];
  return [
    ...(serves.includes('embed') ? [['vector', vector.join(', ')]] : []),
    ...(serves.includes('multiVector') ? [['rows', rows.join(', ')]] : []),
    ...(serving.matryoshka.dimensions.length > 0 ? [['may be cut to', showMatryoshka(serving)]] : []),
    ['limit', limits.join(', ')],
    ['query prompt', JSON.stringify(prompts.query)],
    ['document prompt', JSON.stringify(prompts.document)],
    ['other prompt', JSON.stringify(prompts.unspecified)],
    ['runs', showPolicy(serving)],
  ];
}

function showChosen(chosen: ChosenGraph): string {
  if ('problem' in chosen) return `nothing: ${chosen.problem}`;
  return [`${chosen.path} as ${chosen.precision}`, ...describeConversion(chosen.conversion)].join('; ');
}

function showGraph({ path, precision, sizeBytes, externalFiles }: GraphReport): string[] {
  const external = externalFiles.length > 0 ? `, with ${externalFiles.join(', ')}` : '';
  return [`graph ${precision}`, `${path}, ${showBytes(sizeBytes)}${external}`];
}

/** What a model's files say, a fact a line. */
export function showReport(report: ModelReport): string {
  return showTable([
    ['model', report.modelId],
    ['folder', report.folder],
    ['architecture', report.architecture],
    ['is', report.role ?? 'nothing that can be served'],
    ['serves', report.serves.join(', ') || 'nothing'],
    ['sizes', `hidden ${String(report.hiddenSize)}, vocabulary ${String(report.vocabularySize)}`],
    ...(report.serving === null ? [] : servingRows(report.serving, report.serves)),
    ...report.graphs.map(showGraph),
    ['used on a CPU', showChosen(report.chosenGraph.cpu)],
    ['used on a GPU', showChosen(report.chosenGraph.gpu)],
    ...report.problems.map((problem) => ['problem', problem]),
  ]);
}
