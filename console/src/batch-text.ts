/** Owns what can be told of a batch before it is sent, and which reply belongs to which of its members. */

/** A batch that may be sent, or what is wrong with its text. */
export type BatchCheck = { readonly members: readonly unknown[] } | { readonly problem: string };

/** The members of a JSON array, or of an object alone. */
export function checkBatch(text: string): BatchCheck {
  if (text.trim() === '') return { problem: 'The batch is empty: write a JSON array of calls.' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return { problem: `Not valid JSON${placeOf(text, error)}: nothing is sent.` };
  }
  if (typeof parsed !== 'object' || parsed === null)
    return { problem: 'A batch is an array of calls: nothing is sent.' };
  return { members: Array.isArray(parsed) ? (parsed as unknown[]) : [parsed] };
}

/** Line and column of an error of the parser, where it tells a position. */
function placeOf(text: string, error: unknown): string {
  const position = /position (\d+)/.exec(error instanceof Error ? error.message : '')?.[1];
  if (position === undefined) return '';
  const lines = text.slice(0, Number(position)).split('\n');
  return ` at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;

/** A reply beside the call that it answers. */
export interface PairedReply {
  /** Such as `ping`; null where no call of the batch has the reply's id. */
  readonly method: string | null;
  readonly id: unknown;
  readonly isError: boolean;
  readonly reply: unknown;
}

/** Each reply with the method of the call of its id. */
export function pairReplies(members: readonly unknown[], replies: readonly unknown[]): PairedReply[] {
  return replies.map((reply) => {
    const id = memberOf(reply, 'id');
    const call = id === null ? undefined : members.find((member) => memberOf(member, 'id') === id);
    const method = memberOf(call, 'method');
    return {
      method: typeof method === 'string' ? method : null,
      id,
      isError: memberOf(reply, 'error') !== undefined,
      reply,
    };
  });
}
