/** Owns the panel for sparse vectors: the terms of a text as words with bars. */
import { planned, type Api } from '../api.ts';
import { barList } from '../bar-list.ts';
import { element } from '../element.ts';
import { inRow, kindField, modelField, textField, vendorMember } from '../fields.ts';
import { batchLimitOf, type Info } from '../info.ts';
import { createCallPanel, type Panel } from '../panel.ts';
import { wordsOf } from '../tokens.ts';
import { usageText, type Usage } from '../usage.ts';

/** Most terms that are shown, the heaviest. */
const maxTerms = 60;

interface SparseEmbedded {
  readonly sparse: readonly { readonly indices: readonly number[]; readonly values: readonly number[] }[];
  readonly usage: Usage;
}

/** The panel. */
export function sparsePanel(api: Api, info: Info): Panel {
  const text = textField('Text', 'How does heat move through a metal plate?', 3);
  const kind = kindField();
  const model = modelField(info['x-trivec'].models.sparseEmbed);
  const params = () => ({
    texts: [text.input.value],
    ...(kind.input.value === '' ? {} : { kind: kind.input.value }),
    ...vendorMember(model),
  });
  return createCallPanel(api, {
    id: 'sparse',
    title: 'Sparse',
    purpose: 'Weighted terms of the vocabulary, the heaviest first.',
    fields: [text.view, inRow(kind, model)],
    action: 'Embed',
    plan: () =>
      text.input.value.trim() === '' ? { problem: 'Write a text.' } : { calls: [planned('embed/sparse', params())] },
    async run(result, stop) {
      const modelId = model.input.value;
      const { sparse, usage } = (await api.call('embed/sparse', params(), stop)) as SparseEmbedded;
      const { indices = [], values = [] } = sparse[0] ?? {};
      const terms = indices
        .map((id, index) => ({ id, weight: values[index] ?? 0 }))
        .toSorted((left, right) => right.weight - left.weight)
        .slice(0, maxTerms);
      const words = await wordsOf(
        { api, modelId, batchLimit: batchLimitOf(info, 'sparseEmbed'), stop },
        terms.map(({ id }) => id),
      );
      const bars = terms.map(({ id, weight }, index) => {
        const word = words?.[index] ?? `token ${id}`;
        const told = ['“', { text: word }, `”: token ${id}, weight ${weight.toFixed(5)}`];
        return { text: word, value: weight, told };
      });
      const hint = words === null ? 'The server told no words: terms are shown as ids.' : null;
      result.replaceChildren(
        barList('Terms and their weights', bars, false),
        ...(hint === null ? [] : [element('p', { class: 'hint' }, hint)]),
      );
      const shown = terms.length < indices.length ? `, the ${terms.length} heaviest are shown` : '';
      return `${indices.length} terms${shown}. ${usageText(usage)}`;
    },
  });
}
