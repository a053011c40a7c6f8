/** Owns small line charts over the last minutes, with axes and units. */
import { drawing, element } from './element.ts';
import { niceCeiling, shortNumber } from './lines.ts';

/** One line; null is a gap. */
export interface Series {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly isDashed?: boolean;
}

/** A chart that is drawn again with each look. */
export interface Chart {
  readonly view: HTMLElement;
  draw(series: readonly Series[]): void;
}

const width = 360;
const height = 120;
const left = 44;
const bottom = 20;
const top = 8;

/** A chart of `points` looks, one every `everySeconds`, the newest on the right. */
export function createChart(title: string, unit: string, points: number, everySeconds: number): Chart {
  const now = element('p', { class: 'now' });
  const legend = element('p', { class: 'legend hint' });
  const image = drawing('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img' });
  const view = element(
    'section',
    { class: 'card chart', 'aria-label': title },
    element('h3', {}, title),
    now,
    image,
    legend,
  );
  const x = (index: number, count: number) => left + ((width - left - 6) * (points - count + index)) / (points - 1);

  const draw = (series: readonly Series[]) => {
    const known = series.flatMap(({ values }) => values.filter((value) => value !== null));
    const greatest = niceCeiling(Math.max(0, ...known));
    const y = (value: number) => top + (height - top - bottom) * (1 - value / greatest);
    const ticks = [0, greatest / 2, greatest].flatMap((value) => [
      drawing('line', {
        class: 'rule',
        x1: String(left),
        x2: String(width - 6),
        y1: String(y(value)),
        y2: String(y(value)),
      }),
      drawing('text', { x: String(left - 6), y: String(y(value) + 4), 'text-anchor': 'end' }, shortNumber(value)),
    ]);
    const minutes = ((points - 1) * everySeconds) / 60;
    const times = [
      drawing('text', { x: String(left), y: String(height - 4) }, `−${shortNumber(minutes)} min`),
      drawing('text', { x: String(width - 6), y: String(height - 4), 'text-anchor': 'end' }, 'now'),
    ];
    const lines = series.map(({ values, isDashed = false }) =>
      drawing('path', { class: isDashed ? 'line dashed' : 'line', d: pathOf(values, x, y) }),
    );
    const texts = series.map(({ name, values }) => {
      const last = values.at(-1) ?? null;
      return `${series.length > 1 ? `${name} ` : ''}${last === null ? '–' : `${shortNumber(last)} ${unit}`}`;
    });
    now.textContent = texts.join(' · ');
    legend.textContent =
      series.length > 1
        ? series.map(({ name, isDashed }) => `${isDashed === true ? '┄' : '─'} ${name}`).join('   ')
        : '';
    legend.hidden = series.length < 2;
    image.setAttribute(
      'aria-label',
      `${title}: now ${texts.join(', ')}; axis from 0 to ${shortNumber(greatest)} ${unit}`,
    );
    image.replaceChildren(...ticks, ...times, ...lines);
  };
  return { view, draw };
}

function pathOf(
  values: readonly (number | null)[],
  x: (index: number, count: number) => number,
  y: (value: number) => number,
): string {
  return values
    .map((value, index) => {
      if (value === null) return '';
      const place = `${x(index, values.length).toFixed(1)} ${y(value).toFixed(1)}`;
      // A value between two gaps is a dot.
      return (values[index - 1] ?? null) === null ? `M${place}h0.1` : `L${place}`;
    })
    .join('');
}
