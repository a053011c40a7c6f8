/** Owns attacking a server over HTTP: one connection for each case, judged by what comes back. */
import { connect } from 'node:net';
import type { FuzzCase } from './case.ts';
import { readAnswers, type RawAnswer } from './http-answers.ts';
import { answerProblems, expectationOf, judge } from './oracle.ts';

/** Longest time for a case. @unit ms */
const caseTimeoutMs = 30_000;

/** What may be said to a request that nobody should send; every one is a refusal, none a failure of the server. */
const refusals: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 408, 413, 415, 417, 431]);

/** What is wrong with what a server does with a case; nothing where it keeps the rules. */
export async function attackHttp(port: number, { bytes, bodies }: FuzzCase): Promise<string[]> {
  const expected = bodies?.length ?? null;
  const { received, isClosed } = await exchange(port, bytes, expected);
  const { answers, isBroken } = readAnswers(received, isClosed, bytes.includes('HEAD '));
  if (isBroken) return ['what came back is no HTTP'];
  if (bodies === null) {
    if (!isClosed) return ['the connection was still open after its caller had ended it'];
    return answers.flatMap(looseProblems);
  }
  if (answers.length !== bodies.length) return [`${answers.length} answers for ${bodies.length} requests`];
  return answers.flatMap((answer, at) => strictProblems(answer, bodies[at] ?? Buffer.alloc(0)));
}

/** Sends the bytes and reads until so many answers are there, or to the end of the connection. */
function exchange(
  port: number,
  bytes: Buffer,
  expected: number | null,
): Promise<{ received: Buffer; isClosed: boolean }> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const parts: Buffer[] = [];
    const settle = (isClosed: boolean) => {
      clearTimeout(timer);
      resolve({ received: Buffer.concat(parts), isClosed });
      socket.destroy();
    };
    const timer = setTimeout(() => {
      settle(false);
    }, caseTimeoutMs);
    socket.on('data', (part) => {
      parts.push(part);
      if (expected !== null && readAnswers(Buffer.concat(parts), false).answers.length >= expected) settle(false);
    });
    // A server may well reset a connection whose bytes it will not read.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      settle(true);
    });
    const middle = bytes.length >> 1;
    socket.write(bytes.subarray(0, middle));
    if (expected === null) socket.end(bytes.subarray(middle));
    else socket.write(bytes.subarray(middle));
  });
}

function parse(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

/** The frames of an event stream are the last one, which answers, and notifications before it. */
function answerText({ contentType, body }: RawAnswer): string {
  const text = body.toString();
  if (contentType !== 'text/event-stream') return text;
  return (text.trimEnd().split('\n\n').at(-1) ?? '').replace(/^data: /u, '');
}

function strictProblems(answer: RawAnswer, sent: Buffer): string[] {
  const expected = expectationOf(sent);
  if (answer.status === 204) return judge(expected, undefined);
  if (answer.status !== 200) return [`status ${answer.status} for a request that is well formed`];
  const parsed = parse(answerText(answer));
  return parsed === null ? ['an answer is no JSON'] : judge(expected, parsed.value);
}

function looseProblems(answer: RawAnswer): string[] {
  const { status, contentType, body } = answer;
  if (refusals.has(status) || status === 204) return [];
  if (status !== 200) return [`status ${status}`];
  if (!contentType.startsWith('application/json') && contentType !== 'text/event-stream') return [];
  const parsed = parse(answerText(answer));
  if (body.length === 0) return [];
  if (parsed === null) return ['an answer is no JSON'];
  return (Array.isArray(parsed.value) ? parsed.value : [parsed.value]).flatMap(answerProblems);
}
