/** Owns the panel for multi-vectors: MaxSim token by token. */
import { planned, type Api } from '../api.ts';
import { element, freshId } from '../element.ts';
import { inRow, lineField, modelField, textField, vendorMember } from '../fields.ts';
import { heatMap } from '../heat-map.ts';
import { batchLimitOf, type Info } from '../info.ts';
import { linesOf } from '../lines.ts';
import { createCallPanel, type Panel } from '../panel.ts';
import { isolated } from '../quoted.ts';
import { labelRows, type RowLabels } from '../row-labels.ts';
import { maxSim, type MaxSim } from '../similarity.ts';
import { queryUsageText, type Usage } from '../usage.ts';

type Rows = readonly (readonly number[])[];
interface MultiEmbedded {
  readonly matrices: readonly Rows[];
  readonly usage: Usage;
}

interface Compared {
  readonly text: string;
  readonly rows: RowLabels;
  readonly similarity: MaxSim;
}

const example = ['Heat flows by conduction', 'A cat sat on the mat', 'Metal carries warmth quickly'].join('\n');

/** The panel. */
export function multiPanel(api: Api, info: Info): Panel {
  const query = lineField('Query', 'how does heat move');
  const documents = textField('Documents', example, 4, 'one line each');
  const model = modelField(info['x-trivec'].models.multiVector);
  const paramsOf = (inputs: readonly string[], kind: 'query' | 'document') => ({
    inputs,
    kind,
    ...vendorMember(model),
  });
  /** What becomes of texts of a kind, and the labels of their rows. */
  const embed = async (inputs: readonly string[], kind: 'query' | 'document', stop: AbortSignal) => {
    const modelId = model.input.value;
    const params = paramsOf(inputs, kind);
    const { matrices, usage } = (await api.call('embed/multi', params, stop)) as MultiEmbedded;
    const served = info['x-trivec'].models.multiVector.find(({ id }) => id === modelId);
    const rows = await labelRows(
      { api, modelId, batchLimit: batchLimitOf(info, 'multiVector'), stop },
      served?.rowTokens?.[kind],
      { texts: inputs, rowCounts: matrices.map(({ length }) => length), cut: usage.truncated },
    );
    return { matrices, usage, rows };
  };
  return createCallPanel(api, {
    id: 'multi',
    title: 'Multi-vector',
    purpose:
      'One vector for each token. A document scores the sum of what each token of the query finds in it (MaxSim).',
    fields: [query.view, documents.view, inRow(model)],
    action: 'Compare',
    plan() {
      const inputs = linesOf(documents.input.value);
      if (query.input.value.trim() === '') return { problem: 'Write a query.' };
      if (inputs.length === 0) return { problem: 'Write at least one document.' };
      return {
        calls: [
          planned('embed/multi', paramsOf([query.input.value.trim()], 'query')),
          planned('embed/multi', paramsOf(inputs, 'document')),
        ],
      };
    },
    async run(result, stop) {
      const texts = linesOf(documents.input.value);
      const asked = query.input.value.trim();
      const [ofQuery, ofDocuments] = await Promise.all([embed([asked], 'query', stop), embed(texts, 'document', stop)]);
      const queryRows = ofQuery.matrices[0] ?? [];
      const unnamed: RowLabels = { labels: [], areWords: false };
      const compared = ofDocuments.matrices
        .map((rows, index) => ({
          text: texts[index] ?? '',
          rows: ofDocuments.rows[index] ?? unnamed,
          similarity: maxSim(queryRows, rows),
        }))
        .toSorted((left, right) => right.similarity.score - left.similarity.score);
      showCompared(result, (ofQuery.rows[0] ?? unnamed).labels, compared);
      if (![...ofQuery.rows, ...ofDocuments.rows].every(({ areWords }) => areWords)) {
        const hint = 'Rows have numbers where their tokens are not known, as those of a text that was cut.';
        result.append(element('p', { class: 'hint' }, hint));
      }
      return `${texts.length} documents. ${queryUsageText(ofQuery.usage, ofDocuments.usage, 'documents')}`;
    },
  });
}

/** A choice of the documents, best first, and the map of the chosen one. */
function showCompared(result: HTMLElement, queryLabels: readonly string[], compared: readonly Compared[]): void {
  const map = element('div');
  const name = freshId('document');
  const show = ({ text, rows: { labels }, similarity: { products, best } }: Compared) => {
    map.replaceChildren(
      heatMap({
        label: `Query tokens against the tokens of “${text}”`,
        rows: queryLabels,
        columns: labels,
        values: products,
        hasColumnTexts: true,
        isMarked: (row, column) => best[row] === column,
        tell: (row, column) => {
          const isBest = best[row] === column ? ', the best for this token' : '';
          const product = (products[row]?.[column] ?? 0).toFixed(4);
          return [
            '“',
            { text: queryLabels[row] ?? '' },
            '” and “',
            { text: labels[column] ?? '' },
            `”: ${product}${isBest}`,
          ];
        },
      }),
    );
  };
  const choices = compared.map((document, index) => {
    const input = element('input', { type: 'radio', name, checked: index === 0 });
    input.addEventListener('change', () => show(document));
    const score = element('span', { class: 'value' }, document.similarity.score.toFixed(3));
    return element('label', { class: 'check' }, input, score, isolated(document.text));
  });
  const titleId = freshId('documents');
  const title = element('h3', { id: titleId }, 'Documents by score');
  result.replaceChildren(
    element('div', { class: 'card choices', role: 'radiogroup', 'aria-labelledby': titleId }, title, ...choices),
    map,
  );
  if (compared[0] !== undefined) show(compared[0]);
}
