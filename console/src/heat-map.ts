/** Owns drawing a matrix: each cell its number and a shade for it; which texts meet there is told below. */
import { element } from './element.ts';
import { rove } from './grid-keys.ts';
import { isolated, shownSentence, type Sentence } from './quoted.ts';
import { withoutTurns } from './turns.ts';

/** A matrix and what its rows and columns are. */
export interface HeatMapParts {
  readonly label: string;
  readonly rows: readonly string[];
  readonly columns: readonly string[];
  readonly values: readonly (readonly number[])[];
  /** Whether a cell is marked, beside its shade. */
  readonly isMarked?: (row: number, column: number) => boolean;
  /** What a cell says when it is meant. */
  readonly tell: (row: number, column: number) => Sentence;
  /** Whether columns show their text, or their number only. */
  readonly hasColumnTexts: boolean;
}

/** Two digits, and no sign before a zero. */
const cellText = (value: number) => (Math.abs(value) < 0.005 ? '0.00' : value.toFixed(2));

/** A grid that the pointer and the arrows read cell by cell. */
export function heatMap(parts: HeatMapParts): HTMLElement {
  const { label, rows, columns, values, isMarked = () => false, tell, hasColumnTexts } = parts;
  const readout = element(
    'p',
    { class: 'readout', 'aria-live': 'polite' },
    'Point at a cell, or move with the arrows.',
  );
  const cells = values.map((row, rowIndex) =>
    row.map((value, column) => {
      const marked = isMarked(rowIndex, column);
      const cell = element('td', { role: 'gridcell', class: marked ? 'marked' : '' }, cellText(value));
      if (marked) cell.setAttribute('aria-label', `${cellText(value)}, best of the row`);
      // A rule of the sheet makes a colour of it.
      cell.style.setProperty('--share', String(Math.min(1, Math.max(0, value))));
      return cell;
    }),
  );
  rove(cells, ({ row, column }) => {
    readout.replaceChildren(...shownSentence(tell(row, column)));
  });
  const head = element(
    'tr',
    {},
    element('th', { scope: 'col', 'aria-label': 'row' }),
    ...columns.map((text, index) =>
      element(
        'th',
        { scope: 'col', title: withoutTurns(text), class: hasColumnTexts ? 'text' : '' },
        element('span', {}, hasColumnTexts ? isolated(text) : String(index + 1)),
      ),
    ),
  );
  const lines = cells.map((line, index) => {
    const name = rows[index] ?? '';
    const place = hasColumnTexts ? null : `${index + 1}. `;
    const text = element('span', {}, place, isolated(name));
    return element('tr', {}, element('th', { scope: 'row', title: withoutTurns(name) }, text), ...line);
  });
  const table = element(
    'table',
    { class: 'heat', role: 'grid', 'aria-label': withoutTurns(label) },
    element('thead', {}, head),
    element('tbody', {}, ...lines),
  );
  const scale = element('p', { class: 'scale' }, '0', element('span', { class: 'ramp', 'aria-hidden': 'true' }), '1');
  return element('div', { class: 'card' }, element('div', { class: 'scroll' }, table), readout, scale);
}
