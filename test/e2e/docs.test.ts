/** Owns that the pages tell the truth: their blocks are run, and what they print is compared with what they show. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { arePythonClientsThere, clientsPython } from '../support/clients.ts';
import { metricNames } from '../support/metric-names.ts';
import { blocksOf, comparable, examplesOf, isAsShown, runToEnd, type Block } from '../support/pages.ts';
import { requirement } from '../support/require.ts';
import { startServed, type Served } from '../support/served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
const readPage = (name: string) => readFileSync(join(root, 'docs', name), 'utf8');
const clients = requirement('clients', arePythonClientsThere, 'no Python with the clients in .cache/clients');

/** What a block may need that is not here; what it names is looked for instead. */
const needs: readonly string[] = ['gpu', 'docker', 'hub', 'cluster'];
const programs: readonly string[] = ['js', 'ts', 'python'];
const outputMark = 'It prints:';
const isOutput = ({ language, before }: Block) => language === 'text' && before === outputMark;
/** Addresses of the pages' servers, the first of which every page has. */
const addresses = ['http://127.0.0.1:8000', 'http://127.0.0.1:8001'];

const servers: Served[] = [];
/** A checkout to run in: files that commands write do not end up in the real one. */
const folder = mkdtempSync(join(tmpdir(), 'trivec-docs-'));
beforeAll(async () => {
  for (const name of readdirSync(root)) if (!name.startsWith('.')) symlinkSync(join(root, name), join(folder, name));
  while (servers.length < addresses.length) servers.push(await startServed({ flags: ['--executors', '1'] }));
}, 90_000);
afterAll(async () => {
  await Promise.all(servers.map((served) => served.end()));
  rmSync(folder, { recursive: true, force: true });
});

const urls = () => addresses.map((address, index) => [address, servers[index]?.baseUrl ?? ''] as const);
/** As the page says it, for the servers of the test. */
const here = (text: string) => urls().reduce((changed, [shown, real]) => changed.replaceAll(shown, real), text);
/** As the page would say it. */
const there = (text: string) => urls().reduce((changed, [shown, real]) => changed.replaceAll(real, shown), text);
const environment = { TRIVEC_CACHE_DIR: join(root, '.cache/served'), LANGSMITH_TRACING: 'false' };

/** Holds what was printed against what is shown, each made comparable. */
function expectShown(text: string, shown: string, command: string): void {
  const [real, wanted] = [comparable(there(text), command), comparable(shown, command)];
  if (!isAsShown(real, wanted)) expect(real).toBe(wanted);
}

const servePattern = /^node dist\/main\.js serve (?<flags>.*)$/u;

async function runConsole(block: Block): Promise<void> {
  const examples = examplesOf(block);
  expect(examples, 'a console block has commands').not.toEqual([]);
  for (const { command, shown } of examples) {
    const flags = servePattern.exec(command)?.groups?.['flags'];
    if (flags !== undefined) {
      // It goes on until it is told to end.
      const served = await startServed({ flags: flags.split(' ') });
      expect(await served.end()).toBe(0);
      continue;
    }
    const { code, text } = await runToEnd('bash', ['-c', here(command)], { cwd: folder, environment });
    expect([code, code === 0 ? '' : text], command).toEqual([0, '']);
    if (shown !== '') expectShown(text, shown, command);
  }
}

/** What is wrong with the types of a program that finds the package by its own name. */
function typeErrors(file: string): readonly string[] {
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    types: ['node'],
    typeRoots: [join(root, 'node_modules/@types')],
  };
  const found = ts.getPreEmitDiagnostics(ts.createProgram([file], options));
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

async function runProgram({ language, text }: Block, name: string, shown: string): Promise<void> {
  const file = join(root, '.cache', `${name}.${language === 'python' ? 'py' : language}`);
  // Beside the packages that it imports.
  writeFileSync(file, here(text));
  try {
    if (language === 'ts') expect(typeErrors(file)).toEqual([]);
    const [runner, flags] = language === 'python' ? [clientsPython, []] : [process.execPath, ['--import', 'tsx']];
    const { code, stdout, text: printed } = await runToEnd(runner, [...flags, file], { cwd: root, environment });
    expect([code, code === 0 ? '' : printed]).toEqual([0, '']);
    expectShown(stdout, shown, text);
  } finally {
    rmSync(file);
  }
}

/** The output that is shown for a program: the block behind it, where the words between say so. */
const shownFor = (blocks: readonly Block[], block: Block): string => {
  const next = blocks[blocks.indexOf(block) + 1];
  if (next === undefined || !isOutput(next))
    throw new Error(`line ${block.line}: nothing says what the program prints`);
  return next.text;
};

const program = createProgram('0');
const subcommands = program.commands.flatMap((command) => [command, ...command.commands]);
const allFlags = new Set(subcommands.flatMap(({ options }) => options.map(({ long }) => long ?? '')));
/** Flags of text-embeddings-inference and infinity, whose users are told what takes their place, and of our example. */
const rayExample = readFileSync(join(root, 'examples/ray/embed_parquet.py'), 'utf8');
const othersFlags = new Set(['--model-id', '--dtype', ...(rayExample.match(/--[a-z-]+/gu) ?? [])]);

const composeFile = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const alertsFile = readFileSync(join(root, 'deploy/observability/alerts.yml'), 'utf8');

/** Flags of a command of ours that its `--help` does not have. */
function missingFlags(words: string): readonly string[] {
  // What stands behind the dashes of `bench` is for the server that it starts.
  const dashes = words.indexOf(' -- ');
  if (dashes !== -1) return [words.slice(0, dashes), `serve ${words.slice(dashes + 4)}`].flatMap(missingFlags);
  const [first = '', second = ''] = words.split(' ');
  const command = program.commands.find((each) => each.name() === first);
  const inner = command?.commands.find((each) => each.name() === second) ?? command;
  if (inner === undefined) return [words];
  const known = new Set(inner.options.map(({ long }) => long));
  const given = [...words.matchAll(/(?<=^| )--[a-z][a-z-]*/gu)].map(([flag]) => flag);
  return given.filter((flag) => !known.has(flag)).map((flag) => `${first} ${flag}`);
}

describe.each(pages)('docs/%s', (page) => {
  const text = readPage(page);
  const blocks = blocksOf(text);
  const numbered = (language: (block: Block) => boolean) =>
    blocks.filter(language).map((block) => ({ line: block.line, block }));

  it('has no block that nobody checks', () => {
    const unknown = blocks.filter((block) => {
      if (block.language === 'console') return block.note !== '' && !needs.includes(block.note);
      if (programs.includes(block.language)) return block.note !== '';
      return block.note !== '' || !['text', 'diff'].includes(block.language);
    });
    expect(unknown).toEqual([]);
    const commands = blocks.filter((block) => block.language === 'text' && /^\$ /mu.test(block.text));
    expect(commands, 'commands shown as text').toEqual([]);
  });

  const consoles = numbered(({ language, note }) => language === 'console' && note === '');
  it.runIf(consoles.length > 0).each(consoles)('runs the commands of line $line', { timeout: 120_000 }, ({ block }) =>
    runConsole(block),
  );

  const scripts = numbered(({ language }) => language === 'js' || language === 'ts');
  it.runIf(scripts.length > 0).each(scripts)('runs the program of line $line', { timeout: 60_000 }, ({ block, line }) =>
    runProgram(block, `${page}-${line}`, shownFor(blocks, block)),
  );

  const pythons = numbered(({ language }) => language === 'python');
  it.runIf(pythons.length > 0 && !clients.skip).each(pythons)(
    clients.title('runs the program of line $line'),
    { timeout: 60_000 },
    ({ block, line }) => runProgram(block, `${page}-${line}`, shownFor(blocks, block)),
  );

  it('shows changed lines that are in a program which is run', () => {
    const run = blocks.filter(({ language }) => programs.includes(language)).flatMap((block) => block.text.split('\n'));
    const trimmed = run.map((line) => line.trim());
    for (const block of blocks.filter(({ language }) => language === 'diff')) {
      const added = block.text.split('\n').filter((line) => line.startsWith('+ '));
      expect(added.length, `line ${block.line}`).toBeGreaterThan(0);
      expect(trimmed).toEqual(expect.arrayContaining(added.map((line) => line.slice(2).trim())));
    }
  });

  it('names flags, scripts, files, metrics and pages that exist', () => {
    const flags = [...text.matchAll(/node dist\/main\.js (?<words>[^\n`|]*)/gu)].flatMap(({ groups }) =>
      missingFlags(groups?.['words'] ?? ''),
    );
    expect(flags, 'flags of commands').toEqual([]);
    const named = [...text.matchAll(/`(--[a-z][a-z-]+)/gu)].map(([, flag]) => flag ?? '');
    expect(
      named.filter((flag) => !allFlags.has(flag) && !othersFlags.has(flag)),
      'flags in words',
    ).toEqual([]);
    const links = [...text.matchAll(/\]\((?!https?:)(?<path>[^)#]+)/gu)].map(({ groups }) => groups?.['path'] ?? '');
    const paths = [...text.matchAll(/`((?:deploy|examples|docs|corpus|test|scripts)\/[^`{*]*)`/gu)];
    const elsewhere = blocks.filter(({ note }) => needs.includes(note)).map((block) => block.text);
    const used = elsewhere.flatMap((words) => words.match(/(?<=\s)(?:deploy|examples)\/\S+/gu) ?? []);
    const files = [...links.map((link) => join('docs', link)), ...paths.map(([, path]) => path ?? ''), ...used];
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
    const services = elsewhere.flatMap((words) => words.match(/(?<=\strivec:|compose logs )\w+/gu) ?? []);
    expect(services.filter((service) => !composeFile.includes(`\n  ${service}:\n`))).toEqual([]);
    const alerts = [...text.matchAll(/`(Trivec[A-Z]\w+)`/gu)].map(([, alert]) => alert ?? '');
    expect(alerts.filter((alert) => !alertsFile.includes(`alert: ${alert}\n`))).toEqual([]);
    const metrics = [...text.matchAll(/\btrivec_[a-z_]+/gu)].map(([name]) => name);
    expect(metricNames()).toEqual(expect.arrayContaining(metrics));
    const { scripts: known } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
    const asked = [...text.matchAll(/npm run ([\w:-]+)/gu)].map(([, script]) => script ?? '');
    expect(Object.keys(known)).toEqual(expect.arrayContaining(asked));
  });
});

describe('the list of pages', () => {
  it('has them all', () => {
    const list = readPage('README.md');
    for (const page of pages) if (page !== 'README.md') expect(list).toContain(`](${page})`);
  });
});
