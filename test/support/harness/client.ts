/** Owns what a contract test needs of a client, whatever the transport, and the record of all that it received. */
import { frameProblems, resultProblems } from './frame-check.ts';

/** One answer as it came, and read. */
export interface Answer {
  readonly text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into it freely
  readonly value: any;
}

/** A client of one session. */
export interface RcpClient {
  readonly transport: 'stdio' | 'http';
  /** Sends a frame that must be answered. */
  ask(frame: string | Buffer): Promise<Answer>;
  /**
   * Sends a frame that must not be answered.
   * @throws Error where it is
   */
  tell(frame: string | Buffer): Promise<void>;
  /** Everything wrong with what the server has sent so far. */
  problems(): readonly string[];
  close(): Promise<void>;
}

/** Judges what goes to and comes from one client. */
export interface FrameRecord {
  sent(frame: string | Buffer): void;
  received(text: string): Answer;
  /** A fault that only the transport sees. */
  blame(problem: string): void;
  readonly problems: readonly string[];
  readonly texts: readonly string[];
}

const optIn = /progressToken|logLevel|"log"/;

/** A record that checks every received text against the schema, and that nothing comes unasked. */
export function createFrameRecord(): FrameRecord {
  const problems: string[] = [];
  const texts: string[] = [];
  const methods = new Map<string, Set<string>>();
  let hasOptedIn = false;

  const note = (frame: unknown) => {
    if (typeof frame !== 'object' || frame === null) return;
    const { id, method } = frame as { id?: unknown; method?: unknown };
    const key = JSON.stringify(id) as string | undefined;
    if (key === undefined || typeof method !== 'string') return;
    methods.set(key, (methods.get(key) ?? new Set()).add(method));
  };
  const judge = (frame: unknown) => {
    if (typeof frame !== 'object' || frame === null) return;
    const { id, method, result } = frame as { id?: unknown; method?: unknown; result?: unknown };
    if (method !== undefined && !hasOptedIn) problems.push('a notification came unasked');
    if (method !== undefined && id !== undefined) problems.push('a notification has an id');
    const [asked, ...others] = methods.get(JSON.stringify(id)) ?? [];
    if (result !== undefined && asked !== undefined && others.length === 0) {
      problems.push(...resultProblems(asked, result));
    }
  };
  return {
    problems,
    texts,
    blame: (problem) => problems.push(problem),
    sent(frame) {
      const text = frame.toString();
      hasOptedIn ||= optIn.test(text);
      try {
        const value: unknown = JSON.parse(text);
        for (const member of Array.isArray(value) ? value : [value]) note(member);
      } catch {
        // Nothing to remember of what is not JSON.
      }
    },
    received(text) {
      texts.push(text);
      problems.push(...frameProblems(text).map((problem) => `${problem}: ${text.slice(0, 500)}`));
      let value: unknown = null;
      try {
        value = JSON.parse(text);
        for (const member of Array.isArray(value) ? value : [value]) judge(member);
      } catch {
        // frameProblems has said so.
      }
      return { text, value };
    },
  };
}
