/** Owns the panel for reranking: a list in the order of its scores. */
import { planned, type Api } from '../api.ts';
import { barList } from '../bar-list.ts';
import { choiceField, choices, inRow, lineField, modelMember, textField } from '../fields.ts';
import { rerankMethodsOf, type Info } from '../info.ts';
import { linesOf } from '../lines.ts';
import { createCallPanel, type Panel } from '../panel.ts';
import { usageText, type Usage } from '../usage.ts';

const example = [
  'A cat sat on the mat',
  'Heat flows by conduction',
  'Wings produce lift',
  'Metals conduct warmth better than wood',
].join('\n');

interface Reranked {
  readonly scores: readonly number[];
  readonly order: readonly number[];
  readonly usage: Usage;
}

const movedText = (places: number) =>
  places === 0 ? 'same place' : `${Math.abs(places)} ${places > 0 ? 'up' : 'down'}`;

/** The panel. */
export function rerankPanel(api: Api, info: Info): Panel {
  const query = lineField('Query', 'how does heat move');
  const passages = textField('Passages', example, 5, 'one line each');
  const method = choiceField(
    'Method',
    rerankMethodsOf(info).map((name) => [name, name]),
  );
  const model = choiceField('Model', []);
  const showModels = () => {
    const ids = info['x-trivec'].models.rerank.filter((each) => each.method === method.input.value).map(({ id }) => id);
    model.input.replaceChildren(...choices([...new Set(ids)].map((id) => [id, id])));
  };
  showModels();
  // Before the form hears of it, and plans with the model.
  method.input.addEventListener('input', showModels);
  const params = () => ({
    query: query.input.value.trim(),
    passages: linesOf(passages.input.value),
    method: method.input.value,
    ...modelMember(model),
  });
  return createCallPanel(api, {
    id: 'rerank',
    title: 'Rerank',
    purpose: 'Passages in the order in which they answer the query.',
    fields: [query.view, passages.view, inRow(method, model)],
    action: 'Rerank',
    plan() {
      const asked = params();
      if (asked.query === '') return { problem: 'Write a query.' };
      if (asked.passages.length === 0) return { problem: 'Write at least one passage.' };
      return { calls: [planned('rerank', asked)] };
    },
    async run(result, stop) {
      const asked = params();
      const { scores, order, usage } = (await api.call('rerank', asked, stop)) as Reranked;
      const bars = order.map((index, place) => {
        const text = asked.passages[index] ?? '';
        const score = scores[index] ?? 0;
        return {
          text,
          note: `was ${index + 1}, ${movedText(index - place)}`,
          value: score,
          told: [`place ${place + 1}, score ${score.toFixed(5)}: “`, { text }, '”'],
        };
      });
      result.replaceChildren(barList('Passages, best first', bars, true));
      return `${scores.length} passages by ${asked.method}. ${usageText(usage, 'passages')}`;
    },
  });
}
