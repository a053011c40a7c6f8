/** Owns attacking a server over stdio: lines in, and every line that comes back is accounted for. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { FuzzCase } from './case.ts';
import { expectationOf, judge, type Expectation } from './oracle.ts';

/** Longest time for a case, and for the end of the process. @unit ms */
const caseTimeoutMs = 30_000;
const endTimeoutMs = 15_000;

/** A session of a server of its own. */
export interface StdioTarget {
  readonly pid: number;
  /** True while the process lives. */
  isAlive(): boolean;
  /** What is wrong with what the server does with a case. */
  attack(attack: FuzzCase): Promise<string[]>;
  /** Ends the input and gives the exit code; null where it had to be killed. */
  end(): Promise<number | null>;
}

/** Starts `serve --stdio` and initializes the session. */
export async function openStdioTarget(options: {
  readonly entry: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly flags?: readonly string[];
}): Promise<StdioTarget> {
  const { entry, variables, flags = [] } = options;
  const child = spawn(process.execPath, [entry, 'serve', '--stdio', '--log-level', 'error', ...flags], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { ...variables },
  });
  const killWithParent = () => child.kill('SIGKILL');
  process.once('exit', killWithParent);
  let isAlive = true;
  const closed = once(child, 'close').then(([code]) => {
    isAlive = false;
    process.off('exit', killWithParent);
    return code as number | null;
  });
  // A server that is gone shows as such; the pipe's own error says nothing more.
  child.stdin.on('error', () => undefined);

  const lines: string[] = [];
  let wake: () => void = () => undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    wake();
  });
  void closed.then(() => {
    wake();
  });

  let cases = 0;
  const attack = async ({ bytes }: FuzzCase): Promise<string[]> => {
    const last = `last-${++cases}`;
    const sent = splitLines(bytes);
    const open = sent.map(expectationOf).filter(({ kind }) => kind !== 'none');
    open.push({ kind: 'single', ids: [last] });
    child.stdin.write(bytes);
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: last, method: 'ping' })}\n`);
    const problems: string[] = [];
    const endMs = performance.now() + caseTimeoutMs;
    const timer = setTimeout(() => {
      wake();
    }, caseTimeoutMs);
    try {
      while (open.length > 0) {
        const line = lines.shift();
        const isOver = !isAlive || performance.now() >= endMs;
        if (line !== undefined) problems.push(...account(line, open));
        else if (isOver) return [...problems, `${open.length} lines were not answered`];
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      clearTimeout(timer);
    }
    return problems;
  };

  const hello = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } });
  const problems = await attack({ transport: 'stdio', bytes: Buffer.from(`${hello}\n`), bodies: null });
  if (problems.length > 0) {
    child.kill('SIGKILL');
    throw new Error(`the session did not begin: ${problems.join('; ')}`);
  }
  return {
    pid: child.pid ?? 0,
    isAlive: () => isAlive,
    attack,
    async end() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs);
      try {
        return await closed;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** Lines that a server must read: those of nothing but white space are skipped. */
function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(0x0a, start);
    const end = found === -1 ? bytes.length : found;
    const line = bytes.subarray(start, end);
    if (!/^(?:\xef\xbb\xbf)?[ \t\r]*$/u.test(line.toString('latin1'))) lines.push(line);
    start = end + 1;
  }
  return lines;
}

/** Takes the expectation that a line meets off the list; says what is wrong where it meets none. */
function account(line: string, open: Expectation[]): string[] {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return ['a line is no JSON'];
  }
  if (isNotification(value)) return [];
  const fitting = open.filter((expected) => judge(expected, value).length === 0);
  // What may be answered in two ways waits for what may be answered in one.
  const [found = open[0]] = fitting.sort((a, b) => waysOf(a) - waysOf(b));
  if (found === undefined) return ['a line came that nobody asked for'];
  open.splice(open.indexOf(found), 1);
  return judge(found, value);
}

const waysOf = (expected: Expectation): number => (expected.kind === 'single' ? expected.ids.length : 1);

const isNotification = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'method' in value && !('id' in value);
