/** Owns the generated tables of the README: settings, errors, metrics. `--check` fails where they are out of date. */
import { readFileSync, writeFileSync } from 'node:fs';
import { format } from 'prettier';
import { describeSettings } from '../src/config/describe.ts';
import { flagOf, variableOf } from '../src/config/names.ts';
import { errorCatalogue } from '../src/errors.ts';
import { createIdleMetrics } from '../test/support/declared-metrics.ts';

const readmeUrl = new URL('../README.md', import.meta.url);

const cell = (text: string) => text.replaceAll('|', '\\|');
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |`).join('\n');

function settingsTable(): string {
  const rows = describeSettings().map(({ key, description, valueText, defaultText }) => [
    `\`${flagOf(key)}\` (${valueText ?? 'true|false'})`,
    `\`${variableOf(key)}\``,
    defaultText,
    description,
  ]);
  return table(['Flag', 'Variable', 'Default', 'What it does'], rows);
}

function errorsTable(): string {
  const rows = Object.entries(errorCatalogue).map(([name, { code, retryable, when }]) => [
    `\`${code}\``,
    name,
    retryable ? 'yes' : 'no',
    when,
  ]);
  return table(['Code', 'Name', 'Retryable', 'When'], rows);
}

async function metricsTable(): Promise<string> {
  const metrics = createIdleMetrics();
  const described = await metrics.registry.getMetricsAsJSON();
  return table(
    ['Metric', 'Type', 'What it counts'],
    described.map(({ name, type, help }) => [`\`${name}\``, String(type), help]),
  );
}

/** The README with its generated parts renewed, formatted as the checks want it. */
async function renewed(readme: string): Promise<string> {
  const parts = { settings: settingsTable(), errors: errorsTable(), metrics: await metricsTable() };
  let text = readme;
  for (const [name, content] of Object.entries(parts)) {
    const pattern = new RegExp(`(<!-- ${name}:start -->)[\\s\\S]*?(<!-- ${name}:end -->)`);
    if (!pattern.test(text)) throw new Error(`README.md has no marks for the ${name} table`);
    text = text.replace(pattern, (_, start: string, end: string) => `${start}\n\n${content}\n\n${end}`);
  }
  return format(text, { parser: 'markdown', printWidth: 120 });
}

const readme = readFileSync(readmeUrl, 'utf8');
const wanted = await renewed(readme);
if (!process.argv.includes('--check')) {
  writeFileSync(readmeUrl, wanted);
} else if (wanted !== readme) {
  process.stderr.write('README.md is out of date: run `npm run docs`\n');
  process.exitCode = 1;
}
