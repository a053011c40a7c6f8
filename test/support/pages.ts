/** Owns the blocks of a page, running them as a reader would, and comparing what they print with what the page shows. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A fenced block. */
export interface Block {
  /** First word behind the fence; empty where there is none. */
  readonly language: string;
  /** What follows it. */
  readonly note: string;
  readonly text: string;
  /** Line of the fence, counted from 1. */
  readonly line: number;
  /** The line above it that is not empty. */
  readonly before: string;
}

/** A command and what the page says it prints; empty where it says nothing. */
export interface Example {
  readonly command: string;
  readonly shown: string;
}

/** Every fenced block, in its order. */
export function blocksOf(page: string): readonly Block[] {
  const blocks: Block[] = [];
  const lines = page.split('\n');
  for (let start = 0; start < lines.length; start++) {
    const fence = /^```(?<language>\S*) ?(?<note>.*)$/u.exec(lines[start] ?? '')?.groups;
    if (fence === undefined) continue;
    const end = lines.indexOf('```', start + 1);
    if (end === -1) throw new Error(`the block of line ${start + 1} has no end`);
    blocks.push({
      language: fence['language'] ?? '',
      note: fence['note'] ?? '',
      text: lines.slice(start + 1, end).join('\n'),
      line: start + 1,
      before: lines.slice(0, start).findLast((line) => line.trim() !== '') ?? '',
    });
    start = end;
  }
  return blocks;
}

/** The commands of a `console` block: each line that begins with `$ `, with what is shown below it. */
export const examplesOf = ({ text }: Pick<Block, 'text'>): readonly Example[] =>
  text
    .split(/^\$ /mu)
    .slice(1)
    .map((part) => {
      const [command = '', ...shown] = part.split('\n');
      return { command, shown: shown.join('\n').trim() };
    });

/** What a program printed, and how it ended. */
export interface Printed {
  readonly code: number | null;
  readonly stdout: string;
  /** Both streams, as a terminal would show them. */
  readonly text: string;
}

/** Runs a program to its end; stdin is empty. */
export async function runToEnd(
  file: string,
  args: readonly string[],
  { cwd = root, environment = {} }: { cwd?: string; environment?: Readonly<Record<string, string>> } = {},
): Promise<Printed> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(file, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH, HOME, ...environment } });
  let [stdout, text] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (stdout += part));
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (part: string) => (text += part));
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({ code, stdout, text });
    });
  });
}

/**
 * What is the same on every machine: times, rates and ids are left out, and so are the digits of numbers with a point,
 * because processors differ in the last ones; what follows a number that a command cut in the middle is cut as well.
 * Signs and terms near zero may differ between processors: their number and place may not, nor what the answer has.
 */
export function comparable(text: string, command: string): string {
  const isCut = command.includes('| cut');
  const masked = text
    .trim()
    .replace(/"(latencyMs|queueMs|computeMs)":\d+/gu, '"$1":0')
    .replace(/[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/gu, '#id')
    .replace(/-?\d+\.\d+(e-?\d+)?/gu, '#')
    .replace(/\d+ (tokens\/s|ms)/gu, '# $1');
  const kept = isCut ? masked.slice(0, 60) : masked;
  const isExact = !/ubinary|int8|sparse|base64/u.test(command);
  if (isExact) return kept;
  const members = isCut ? [] : (masked.match(/"[\w-]+":/gu) ?? []);
  return [kept.replace(/\d+/gu, '#').slice(0, 70), ...members].join(' ');
}

/** Whether a text is what is shown, where `…` stands for anything. */
export function isAsShown(text: string, shown: string): boolean {
  const parts = shown.split('…').map((part) => part.trim().replace(/[.*+?^${}()|[\]\\]/gu, '\\$&'));
  return new RegExp(`^${parts.join('[\\s\\S]*')}$`, 'u').test(text.trim());
}
