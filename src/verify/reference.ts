/** Owns the talk with the process that runs transformers.js: one question at a time, each bounded. */
import { fork } from 'node:child_process';
import { systemClock } from '../clock.ts';
import type {
  ReferenceIds,
  ReferenceModel,
  ReferenceOutput,
  ReferenceReply,
  ReferenceRequest,
} from './reference-messages.ts';
import type { Sample } from './samples.ts';

/** Longest wait for an answer: opening a model of some gigabytes, or running one text. @unit ms */
const maxAnswerMs = 300_000;

/** Something that transformers.js did not do, with its reason. */
export class ReferenceFailure extends Error {
  override readonly name = 'ReferenceFailure';
}

/** A model that transformers.js has opened. */
export interface Reference {
  /** Version of transformers.js. */
  readonly version: string;
  /** @throws ReferenceFailure */
  encode(sample: Pick<Sample, 'text' | 'pair' | 'hasSpecialTokens'>): Promise<ReferenceIds>;
  /** The named output for one text. @throws ReferenceFailure */
  run(item: Pick<Sample['item'], 'ids' | 'typeIds'>, output: string): Promise<ReferenceOutput>;
}

/** Characters of a reason that are told: it may go on to quote what it was given. */
const maxReasonCharacters = 240;

const shorten = (reason: string): string => reason.replaceAll(/\s+/gu, ' ').trim().slice(0, maxReasonCharacters);

interface Process {
  /** @throws ReferenceFailure */
  ask<Type extends ReferenceReply['type']>(
    request: ReferenceRequest,
    type: Type,
  ): Promise<Extract<ReferenceReply, { type: Type }>>;
  end(): void;
}

function startProcess(entry: string): Process {
  const child = fork(entry, [], {
    serialization: 'advanced',
    // Standard output is the report's.
    stdio: ['ignore', 2, 2, 'ipc'],
    execArgv: [],
    // It needs no key or token, and nothing of it may be sent anywhere.
    env: { ORT_DISABLE_TELEMETRY: '1' },
  });
  let goneReason: string | null = null;
  let settle = (_reply: ReferenceReply): void => undefined;
  const close = (reason: string): void => {
    goneReason ??= reason;
    child.kill('SIGKILL');
    settle({ type: 'failed', reason: goneReason });
  };
  child.on('error', (error) => {
    close(error.message);
  });
  child.on('close', (code: number | null, signal: string | null) => {
    close(`its process ended with ${signal ?? `exit code ${String(code)}`}`);
  });
  child.on('message', (reply: ReferenceReply) => {
    settle(reply);
  });

  const replyTo = (request: ReferenceRequest): Promise<ReferenceReply> =>
    new Promise((resolve) => {
      const cancelTimer = systemClock.after(maxAnswerMs, () => {
        close(`it gave no answer within ${String(maxAnswerMs)} ms`);
      });
      settle = (reply) => {
        cancelTimer();
        resolve(reply);
      };
      if (goneReason !== null) settle({ type: 'failed', reason: goneReason });
      else child.send(request, (error) => (error === null ? undefined : close(error.message)));
    });

  return {
    async ask<Type extends ReferenceReply['type']>(request: ReferenceRequest, type: Type) {
      const reply = await replyTo(request);
      if (reply.type === 'failed') throw new ReferenceFailure(`transformers.js failed: ${shorten(reply.reason)}`);
      if (reply.type !== type) throw new Error(`the reference answered "${reply.type}" to "${request.type}"`);
      return reply as Extract<ReferenceReply, { type: Type }>;
    },
    end: () => {
      close('the comparison is over');
    },
  };
}

/**
 * What `work` gives with the model open in transformers.js; its process is gone afterwards.
 * @param entry the compiled entry file of that process
 * @throws ReferenceFailure where it cannot open the model
 */
export async function withReference<Result>(
  entry: string,
  model: ReferenceModel,
  work: (reference: Reference) => Promise<Result>,
): Promise<Result> {
  const process = startProcess(entry);
  try {
    const { version } = await process.ask({ type: 'open', model }, 'opened');
    return await work({
      version,
      async encode({ text, pair, hasSpecialTokens }) {
        return (await process.ask({ type: 'encode', text, pair, hasSpecialTokens }, 'encoded')).encoded;
      },
      async run({ ids, typeIds }, output) {
        return (await process.ask({ type: 'run', ids, typeIds, output }, 'ran')).output;
      },
    });
  } finally {
    process.end();
  }
}
