/** Owns frames that are nearly right: valid calls of every method, with faults in their values. */
import { below, oneIn, pick, type Random } from './random.ts';

/** Stands in texts of callers; no error may repeat it. */
export const marker = 'zq7marker';

/** Stands for a number that JSON can say and JavaScript cannot. */
const rawPrefix = '@raw:';
const oddNumbers = ['1e400', '-1e400', '9007199254740993', '1.0', '-0', '1e-400', '12345678901234567890123', '0.1e1'];

const texts = [
  'a',
  marker,
  `${marker} é😀`,
  `line ${marker}\nnext\r\n`,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '\udfff x',
  'e\u0301\u202e\u2028',
  '中文'.repeat(40),
  `${'word '.repeat(700)}${marker}`,
];
const ids: readonly unknown[] = [1, 0, -7, 'a', '', 'é', '1', 1.5, `${rawPrefix}9007199254740993`, `${rawPrefix}1e400`];
const oddValues: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  '',
  'x',
  '\ud800',
  [],
  {},
  [[]],
  [null],
  { type: 'image', uri: 'file:///etc/passwd' },
  { type: 'text' },
  { id: 1, method: 'ping' },
  ...oddNumbers.map((number) => rawPrefix + number),
];
const names = ['id', 'method', 'params', 'inputs', 'jsonrpc', '__proto__', 'constructor', 'toString', '_meta', 'é', ''];
const methods = ['ping', 'info', 'embed', 'embed/sparse', 'embed/multi', 'rerank'];
const otherMethods = [
  'initialize',
  'retrieve',
  'no/such',
  'PING',
  'toString',
  'notifications/cancel',
  'x-vendor/y',
  '',
];

const someTexts = (random: Random): unknown[] =>
  Array.from({ length: below(random, 4) }, () =>
    oneIn(random, 5) ? { type: 'text', text: pick(random, texts) } : pick(random, texts),
  );

function paramsOf(random: Random, method: string): Record<string, unknown> {
  const extra: Record<string, unknown> = {};
  if (oneIn(random, 4)) extra['_meta'] = { progressToken: pick(random, ids), deadlineMs: 1 + below(random, 20_000) };
  if (oneIn(random, 4)) {
    extra['x-trivec'] = {
      truncate: pick(random, [true, false]),
      priority: pick(random, ['bulk', 'interactive']),
      output: pick(random, ['float32', 'int8', 'ubinary']),
    };
  }
  if (method === 'ping') return { nonce: pick(random, ids), ...extra };
  if (method === 'notifications/cancel') return { id: pick(random, ids), ...extra };
  if (method === 'initialize') return { protocolVersion: 1, client: { name: 'fuzz', version: '1' }, ...extra };
  if (method === 'rerank') {
    return { query: pick(random, texts), passages: someTexts(random), topN: 1 + below(random, 3), ...extra };
  }
  if (method === 'embed' && oneIn(random, 4)) extra['encoding'] = 'f32-base64';
  if (oneIn(random, 3)) extra['kind'] = pick(random, ['query', 'document']);
  return { [oneIn(random, 4) ? 'texts' : 'inputs']: someTexts(random), ...extra };
}

function validFrame(random: Random): Record<string, unknown> {
  const method = oneIn(random, 5) ? pick(random, otherMethods) : pick(random, methods);
  const id = oneIn(random, 8) ? {} : { id: pick(random, ids) };
  return { jsonrpc: '2.0', ...id, method, params: paramsOf(random, method) };
}

type Holder = Record<string, unknown>;

/** Every object and list in a value, with the value itself. */
function holdersOf(value: unknown): Holder[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Holder, ...Object.values(value).flatMap(holdersOf)];
}

/** Changes one place of a frame: another value, a missing or renamed member, a member more, a value in a list. */
function breakOne(random: Random, frame: Holder): void {
  const holder = pick(random, holdersOf(frame));
  const keys = Object.keys(holder);
  const key = keys.length === 0 || oneIn(random, 8) ? pick(random, names) : pick(random, keys);
  const current = Object.hasOwn(holder, key) ? holder[key] : null;
  // A copy: what is shared by two places could be put into itself.
  const put = (name: string, value: unknown) => {
    Object.defineProperty(holder, name, {
      value: structuredClone(value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  };
  if (Array.isArray(holder)) {
    if (oneIn(random, 3)) holder.splice(below(random, holder.length + 1), 1);
    else holder.push(structuredClone(pick(random, oddValues)));
    return;
  }
  switch (below(random, 5)) {
    case 0:
      Reflect.deleteProperty(holder, key);
      return;
    case 1:
      put(pick(random, names), current);
      return;
    case 2:
      put(key, [current]);
      return;
    default:
      put(key, pick(random, oddValues));
  }
}

function brokenFrame(random: Random): unknown {
  if (oneIn(random, 40)) return pick(random, oddValues);
  const frame = validFrame(random);
  for (let faults = below(random, 4); faults > 0; faults -= 1) breakOne(random, frame);
  return frame;
}

/** Numbers as they are meant, and sometimes everything beyond ASCII as escapes, or white space where it may stand. */
function write(random: Random, value: unknown): string {
  const text = JSON.stringify(value, null, oneIn(random, 10) ? '\t' : undefined).replaceAll(
    /"@raw:([-+.\deE]+)"/gu,
    (_, number: string) => number,
  );
  if (!oneIn(random, 4)) return text;
  return text.replaceAll(/[^\x20-\x7e\t\n]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** A frame, an array of frames, or a nesting, as text. */
export function generateText(random: Random): string {
  if (oneIn(random, 50)) {
    const depth = below(random, oneIn(random, 10) ? 150_000 : 3_000);
    const [open, close] = pick(random, [['[', ']'] as const, ['{"a":', '}'] as const]);
    return `{"jsonrpc":"2.0","id":1,"method":"ping","params":${open.repeat(depth)}1${close.repeat(depth)}}`;
  }
  if (!oneIn(random, 5)) return write(random, brokenFrame(random));
  const length = oneIn(random, 30) ? 60 + below(random, 10) : below(random, 6);
  const members = Array.from({ length }, () => brokenFrame(random));
  return write(random, oneIn(random, 20) ? [members] : members);
}
