/** Owns reading the Prometheus text format. */

/** One line of it. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What one look at the metrics gave. */
export type Samples = readonly Sample[];

const linePattern = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/s;
const labelPattern = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/gs;
const escapes: Readonly<Record<string, string>> = { n: '\n' };
const numbers: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity, NaN };

/** Every sample of a text, in its order; comments and lines that are none are left out. */
export function parseMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labelText = '', valueText = ''] = linePattern.exec(line.trim()) ?? [];
    if (name === undefined) return [];
    const value = numbers[valueText] ?? Number(valueText);
    if (Number.isNaN(value) && valueText !== 'NaN') return [];
    const labels = [...labelText.matchAll(labelPattern)].map(([, label = '', quoted = '']) => [
      label,
      quoted.replaceAll(/\\(.)/gs, (_, letter: string) => escapes[letter] ?? letter),
    ]);
    return [{ name, labels: Object.fromEntries(labels) as Record<string, string>, value }];
  });
}

/** The sum of the samples of a name that a test lets through; 0 where there is none. */
export const sumOf = (samples: Samples, name: string, isMeant: (labels: Sample['labels']) => boolean = () => true) =>
  samples.filter((sample) => sample.name === name && isMeant(sample.labels)).reduce((sum, { value }) => sum + value, 0);
