/** Owns the life of one tokenizer process: its start, its calls, and what happens to them when it ends. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { TypedEncoding } from './library.ts';
import type { TokenizerReply, TokenizerRequest } from './transformers-js-child.ts';

/** A tokenizer process that is ready for calls. */
export interface TokenizerProcess {
  /** Token texts and their ids. */
  readonly vocabulary: ReadonlyMap<string, number>;
  readonly pid: number | undefined;
  isAlive(): boolean;
  encodeBatch(texts: readonly string[]): Promise<readonly Int32Array[]>;
  encodeWithSpecialTokens(text: string, pair: string | null): Promise<TypedEncoding>;
  decodeBatch(ids: readonly (readonly number[])[], skipsSpecialTokens: boolean): Promise<string[]>;
}

interface PendingCall {
  readonly resolve: (reply: TokenizerReply) => void;
  readonly reject: (error: Error) => void;
}

function forkChild(modelFolder: string): ChildProcess {
  const isSource = import.meta.url.endsWith('.ts');
  const entry = new URL(`./transformers-js-child.${isSource ? 'ts' : 'js'}`, import.meta.url);
  const loader = () => pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  return fork(fileURLToPath(entry), [modelFolder], {
    serialization: 'advanced',
    execArgv: isSource ? ['--import', loader()] : [],
    // Its standard output would be the protocol's where the server speaks over stdio.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
}

/**
 * A process that has read the model's tokenizer; it never keeps this process alive while idle and ends with it.
 * Rejects with the reason where the tokenizer cannot be read.
 */
export function startTokenizerProcess(modelFolder: string): Promise<TokenizerProcess> {
  const child = forkChild(modelFolder);
  const calls = new Map<number, PendingCall>();
  let lastCallId = 0;
  let isAlive = true;
  child.unref();

  const settled = (callId: number): PendingCall | undefined => {
    const call = calls.get(callId);
    calls.delete(callId);
    if (calls.size === 0) child.channel?.unref();
    return call;
  };

  // A process that takes no calls is as good as gone: its calls fail, and it is not asked again.
  const end = (reason: string): Error => {
    isAlive = false;
    child.kill('SIGKILL');
    const error = new Error(`the tokenizer process ended: ${reason}`);
    for (const callId of [...calls.keys()]) settled(callId)?.reject(error);
    return error;
  };

  const call = (request: (callId: number) => TokenizerRequest): Promise<TokenizerReply> =>
    new Promise((resolve, reject) => {
      const callId = ++lastCallId;
      calls.set(callId, { resolve, reject });
      child.channel?.ref();
      child.send(request(callId), (error) => {
        if (error !== null) end(error.message);
      });
    });

  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      reject(end(error.message));
    });
    child.on('exit', (code, signal) => {
      reject(end(signal ?? `exit code ${String(code)}`));
    });
    child.on('message', (reply: TokenizerReply) => {
      if (reply.type === 'openFailed') {
        reject(new Error(reply.reason));
        child.kill('SIGKILL');
      } else if (reply.type === 'failed') {
        settled(reply.callId)?.reject(new Error(reply.reason));
      } else if (reply.type !== 'ready') {
        settled(reply.callId)?.resolve(reply);
      } else {
        child.channel?.unref();
        resolve({
          vocabulary: reply.vocabulary,
          pid: child.pid,
          isAlive: () => isAlive,
          async encodeBatch(texts) {
            const answer = await call((callId) => ({ type: 'batch', callId, texts }));
            return answer.type === 'batch' ? answer.batch : [];
          },
          async encodeWithSpecialTokens(text, pair) {
            const answer = await call((callId) => ({ type: 'typed', callId, text, pair }));
            return answer.type === 'typed' ? answer.encoding : { ids: [], typeIds: [] };
          },
          async decodeBatch(ids, skipsSpecialTokens) {
            const answer = await call((callId) => ({ type: 'decode', callId, ids, skipsSpecialTokens }));
            return answer.type === 'decode' ? [...answer.texts] : [];
          },
        });
      }
    });
  });
}
