/** Owns a list of values with bars: the number stands beside its bar. */
import { element } from './element.ts';
import { rove } from './grid-keys.ts';
import { isolated, plainSentence, shownSentence, type Sentence } from './quoted.ts';

/** One line of the list. */
export interface Bar {
  readonly text: string;
  /** Small print behind the text. */
  readonly note?: string;
  readonly value: number;
  /** What the line says when it is meant. */
  readonly told: Sentence;
}

/** A list that the pointer and the arrows read line by line. */
export function barList(label: string, bars: readonly Bar[], isOrdered: boolean): HTMLElement {
  const greatest = Math.max(0, ...bars.map(({ value }) => value)) || 1;
  const readout = element(
    'p',
    { class: 'readout', 'aria-live': 'polite' },
    'Point at a line, or move with the arrows.',
  );
  const lines = bars.map(({ text, note, value, told }) => {
    const bar = element('span', { class: 'bar', 'aria-hidden': 'true' });
    bar.style.setProperty('--share', String(Math.max(0, value / greatest)));
    const line = element(
      'li',
      { title: plainSentence(told) },
      element('span', { class: 'text' }, isolated(text), note === undefined ? null : element('small', {}, note)),
      element('span', { class: 'value' }, value.toFixed(3)),
      bar,
    );
    return line;
  });
  rove(
    lines.map((line) => [line]),
    ({ row }) => {
      readout.replaceChildren(...shownSentence(bars[row]?.told ?? []));
    },
  );
  const list = element(isOrdered ? 'ol' : 'ul', { class: 'bars', 'aria-label': label }, ...lines);
  return element('div', { class: 'card' }, list, readout);
}
