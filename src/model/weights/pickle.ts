/** Owns the reading of the few pickle instructions that a saved state dictionary has; calls are kept, never made. */

/** A class or call that the pickle names, as data. */
export interface PickleCall {
  readonly call: string;
  readonly arguments: readonly unknown[];
}

/** The state of a reader that only ever stores values. */
interface Reader {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  position: number;
  readonly stack: unknown[];
  readonly marks: number[];
  readonly memo: Map<number, unknown>;
}

const take = (reader: Reader, length: number): number => {
  const start = reader.position;
  reader.position += length;
  if (reader.position > reader.bytes.byteLength) throw new Error('is a damaged pickle');
  return start;
};
const byte = (reader: Reader): number => reader.view.getUint8(take(reader, 1));
const uint32 = (reader: Reader): number => reader.view.getUint32(take(reader, 4), true);
const text = (reader: Reader, length: number): string => {
  const start = take(reader, length);
  return Buffer.from(reader.bytes.subarray(start, start + length)).toString('utf8');
};

function line(reader: Reader): string {
  const end = reader.bytes.indexOf(0x0a, reader.position);
  if (end < 0) throw new Error('is a damaged pickle');
  const content = text(reader, end - reader.position);
  reader.position = end + 1;
  return content;
}

const pop = (reader: Reader): unknown => {
  if (reader.stack.length === 0) throw new Error('is a damaged pickle');
  return reader.stack.pop();
};
const popMarked = (reader: Reader): unknown[] => reader.stack.splice(reader.marks.pop() ?? 0);

function setItems(reader: Reader, items: readonly unknown[]): void {
  const target = reader.stack.at(-1);
  if (!(target instanceof Map)) throw new Error('is an unknown kind of pickle');
  for (let index = 0; index + 1 < items.length; index += 2) target.set(items[index], items[index + 1]);
}

/** A call as data; an ordered dictionary, the one thing that is really made, is a map. */
function reduce(reader: Reader): unknown {
  const given = pop(reader);
  const callee = pop(reader) as PickleCall;
  const name = String(callee.arguments[0]);
  if (name === 'collections.OrderedDict') return new Map<unknown, unknown>();
  return { call: name, arguments: Array.isArray(given) ? (given as unknown[]) : [] } satisfies PickleCall;
}

/** What each instruction does, by its code. */
const instructions: Readonly<Record<string, (reader: Reader) => void>> = {
  '(': (r) => void r.marks.push(r.stack.length),
  ')': (r) => void r.stack.push([]),
  '}': (r) => void r.stack.push(new Map<unknown, unknown>()),
  N: (r) => void r.stack.push(null),
  '\x88': (r) => void r.stack.push(true),
  '\x89': (r) => void r.stack.push(false),
  J: (r) => void r.stack.push(r.view.getInt32(take(r, 4), true)),
  K: (r) => void r.stack.push(byte(r)),
  M: (r) => void r.stack.push(r.view.getUint16(take(r, 2), true)),
  X: (r) => void r.stack.push(text(r, uint32(r))),
  c: (r) => void r.stack.push({ call: 'class', arguments: [`${line(r)}.${line(r)}`] } satisfies PickleCall),
  t: (r) => void r.stack.push(popMarked(r)),
  '\x85': (r) => void r.stack.push([pop(r)]),
  '\x86': (r) => void r.stack.push([pop(r), pop(r)].reverse()),
  '\x87': (r) => void r.stack.push([pop(r), pop(r), pop(r)].reverse()),
  Q: (r) => void r.stack.push({ call: 'persistent id', arguments: [pop(r)] } satisfies PickleCall),
  R: (r) => void r.stack.push(reduce(r)),
  // State set on a dictionary (its metadata): of no use here.
  b: (r) => void pop(r),
  s: (r) => {
    const value = pop(r);
    setItems(r, [pop(r), value]);
  },
  u: (r) => {
    setItems(r, popMarked(r));
  },
  q: (r) => void r.memo.set(byte(r), r.stack.at(-1)),
  r: (r) => void r.memo.set(uint32(r), r.stack.at(-1)),
  h: (r) => void r.stack.push(r.memo.get(byte(r))),
  j: (r) => void r.stack.push(r.memo.get(uint32(r))),
};

/**
 * The value that a pickle of protocol 2 describes, with calls as data. Throws at any instruction that a saved
 * state dictionary does not need.
 * @source Python, Lib/pickletools.py
 */
export function readPickle(bytes: Uint8Array): unknown {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const reader: Reader = { bytes, view, position: 0, stack: [], marks: [], memo: new Map() };
  if (byte(reader) !== 0x80 || byte(reader) !== 2) throw new Error('is no pickle of protocol 2');
  for (;;) {
    const code = String.fromCharCode(byte(reader));
    if (code === '.') return pop(reader);
    const instruction = Object.hasOwn(instructions, code) ? instructions[code] : undefined;
    if (instruction === undefined) throw new Error(`is a pickle with the instruction ${JSON.stringify(code)}`);
    instruction(reader);
  }
}
