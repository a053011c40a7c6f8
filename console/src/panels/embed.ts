/** Owns the panel for dense vectors: how alike lines are. */
import { planned, type Api } from '../api.ts';
import { inRow, kindField, modelField, textField, vendorMember } from '../fields.ts';
import { heatMap } from '../heat-map.ts';
import type { Info } from '../info.ts';
import { linesOf } from '../lines.ts';
import { createCallPanel, type Panel } from '../panel.ts';
import { cosines } from '../similarity.ts';
import { usageText, type Usage } from '../usage.ts';

const example = [
  'How does heat move through a metal plate?',
  'Thermal conduction in solids',
  'Wings produce lift when air flows over them',
  'Aerodynamics of an airfoil',
  'The cat slept on the warm stove',
].join('\n');

/** Most lines whose map can still be read. */
const maxLines = 40;

interface Embedded {
  readonly vectors: readonly (readonly number[])[];
  readonly dimension: number;
  readonly usage: Usage;
}

/** The panel. */
export function embedPanel(api: Api, info: Info): Panel {
  const lines = textField('Lines', example, 6, 'one text each');
  const kind = kindField();
  const model = modelField(info['x-trivec'].models.embed);
  const params = () => ({
    inputs: linesOf(lines.input.value),
    ...(kind.input.value === '' ? {} : { kind: kind.input.value }),
    ...vendorMember(model),
  });
  return createCallPanel(api, {
    id: 'embed',
    title: 'Embed',
    purpose: 'One dense vector for each line, and the cosine of each pair.',
    fields: [lines.view, inRow(kind, model)],
    action: 'Embed',
    plan() {
      const { length } = params().inputs;
      if (length === 0) return { problem: 'Write at least one line.' };
      if (length > maxLines) return { problem: `The map shows ${maxLines} lines at most, these are ${length}.` };
      return { calls: [planned('embed', params())] };
    },
    async run(result, stop) {
      const asked = params();
      const { vectors, dimension, usage } = (await api.call('embed', asked, stop)) as Embedded;
      const values = cosines(vectors);
      const map = heatMap({
        label: 'Cosine of each pair of lines',
        rows: asked.inputs,
        columns: asked.inputs,
        values,
        hasColumnTexts: false,
        tell: (row, column) => [
          `cosine ${(values[row]?.[column] ?? 0).toFixed(4)}: “`,
          { text: asked.inputs[row] ?? '' },
          '” and “',
          { text: asked.inputs[column] ?? '' },
          '”',
        ],
      });
      result.replaceChildren(map);
      return `${vectors.length} vectors of ${dimension} numbers. ${usageText(usage)}`;
    },
  });
}
