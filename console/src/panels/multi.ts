/** Owns the panel for multi-vectors: MaxSim token by token. */
import { planned, type Api } from '../api.ts';
import { element, freshId } from '../element.ts';
import { inRow, lineField, modelField, textField } from '../fields.ts';
import { heatMap } from '../heat-map.ts';
import type { Info } from '../info.ts';
import { linesOf, rowLabels } from '../lines.ts';
import { createCallPanel, type Panel } from '../panel.ts';
import { maxSim, type MaxSim } from '../similarity.ts';
import { tokenTextsOf, wordsHint } from '../tokens.ts';
import { usageText, type Usage } from '../usage.ts';

type Rows = readonly (readonly number[])[];
interface MultiEmbedded {
  readonly matrices: readonly Rows[];
  readonly usage: Usage;
}

interface Compared {
  readonly text: string;
  readonly labels: readonly string[];
  readonly similarity: MaxSim;
}

const example = ['Heat flows by conduction', 'A cat sat on the mat', 'Metal carries warmth quickly'].join('\n');

/** The panel. */
export function multiPanel(api: Api, info: Info): Panel {
  const query = lineField('Query', 'how does heat move');
  const documents = textField('Documents', example, 4, 'one line each');
  const model = modelField(info['x-trivec'].models.multiVector);
  const vendor = () => (model.input.options.length > 1 ? { 'x-trivec': { model: model.input.value } } : {});
  const paramsOf = (inputs: readonly string[], kind: string) => ({ inputs, kind, ...vendor() });
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
    async run(result) {
      const texts = linesOf(documents.input.value);
      const asked = query.input.value.trim();
      const [ofQuery, ofDocuments, tokens] = await Promise.all([
        api.call('embed/multi', paramsOf([asked], 'query')) as Promise<MultiEmbedded>,
        api.call('embed/multi', paramsOf(texts, 'document')) as Promise<MultiEmbedded>,
        tokenTextsOf(api, [asked, ...texts]),
      ]);
      const queryRows = ofQuery.matrices[0] ?? [];
      const compared = ofDocuments.matrices
        .map((rows, index) => ({
          text: texts[index] ?? '',
          labels: rowLabels(rows.length, tokens?.[index + 1]),
          similarity: maxSim(queryRows, rows),
        }))
        .toSorted((left, right) => right.similarity.score - left.similarity.score);
      showCompared(result, rowLabels(queryRows.length, tokens?.[0]), compared);
      const hint = tokens === null ? null : wordsHint(info, model.input.value);
      if (hint !== null) result.append(element('p', { class: 'hint' }, hint));
      return `${texts.length} documents. ${usageText(ofDocuments.usage)}`;
    },
  });
}

/** A choice of the documents, best first, and the map of the chosen one. */
function showCompared(result: HTMLElement, queryLabels: readonly string[], compared: readonly Compared[]): void {
  const map = element('div');
  const name = freshId('document');
  const show = ({ text, labels, similarity: { products, best } }: Compared) => {
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
          return `“${queryLabels[row] ?? ''}” and “${labels[column] ?? ''}”: ${(products[row]?.[column] ?? 0).toFixed(4)}${isBest}`;
        },
      }),
    );
  };
  const choices = compared.map((document, index) => {
    const input = element('input', { type: 'radio', name, checked: index === 0 });
    input.addEventListener('change', () => show(document));
    const score = element('span', { class: 'value' }, document.similarity.score.toFixed(3));
    return element('label', { class: 'check' }, input, score, document.text);
  });
  const titleId = freshId('documents');
  const title = element('h3', { id: titleId }, 'Documents by score');
  result.replaceChildren(
    element('div', { class: 'card choices', role: 'radiogroup', 'aria-labelledby': titleId }, title, ...choices),
    map,
  );
  if (compared[0] !== undefined) show(compared[0]);
}
