/** Owns making up attacks: frames with faults, in requests with faults. */
import { breakBytes } from './bytes.ts';
import type { FuzzCase } from './case.ts';
import { generateText } from './frames.ts';
import { below, oneIn, pick, type Random } from './random.ts';

/** Most lines and pipelined requests of one case. */
const maxFrames = 4;

const paths = ['/rcp', '/rcp/', '/rcp/embed', '/rcp/ping', '/rcp/embed/sparse', '/rcp/batch', '/rcp/%70ing?x=1'];
const oddPaths = [
  '/',
  '/rcp/../metrics',
  '/rcp/%00',
  '/rcp/%zz',
  '/metrics',
  '//',
  '/rcpx',
  `/${'a'.repeat(9000)}`,
  '*',
];
const oddVerbs = ['GET', 'PUT', 'HEAD', 'OPTIONS', 'DELETE', 'post', 'TRACE', 'CONNECT', 'PRI', ''];
const oddHeaders = [
  'Host: evil.example',
  'Host:',
  'Host: a b',
  'Host: 127.0.0.1:99999',
  'Host: [::1]:80',
  'Content-Length: 5',
  'Content-Length: -1',
  'Content-Length: 99999999999999999999',
  'Content-Length: 40000000',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Content-Encoding: gzip',
  'Content-Type: text/plain; charset=utf-16',
  'Expect: 100-continue',
  'Expect: 200-ok',
  'Origin: https://evil.example',
  'Origin: null',
  'Authorization: Bearer \xff',
  'Accept: text/event-stream',
  'Accept: text/event-stream;q=0, */*',
  'Connection: close',
  'Connection: upgrade',
  'Upgrade: h2c',
  'X-Request-Id: \x01',
  `X-Long: ${'y'.repeat(20_000)}`,
  'RCP-Session: fuzz',
  'traceparent: 00-0-0-0',
  ' folded',
  'no colon',
  ': no name',
];

function generateBody(random: Random): Buffer {
  const text = Buffer.from(`${oneIn(random, 30) ? '\ufeff' : ''}${generateText(random)}`);
  return oneIn(random, 5) ? breakBytes(random, text) : text;
}

const withHead = (lines: readonly string[], body: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);

/** A request that is well formed, whatever its body holds. */
function wrap(random: Random, body: Buffer): Buffer {
  const start = [`POST ${pick(random, paths)} HTTP/1.1`, 'Host: 127.0.0.1', 'Content-Type: application/json'];
  if (!oneIn(random, 4)) return withHead([...start, `Content-Length: ${body.length}`], body);
  const at = below(random, body.length + 1);
  const chunks = [body.subarray(0, at), body.subarray(at)].filter((part) => part.length > 0);
  const parts = chunks.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
  return withHead([...start, 'Transfer-Encoding: chunked'], Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]));
}

/** A request whose head nobody should send. */
function wrapBadly(random: Random, body: Buffer): Buffer {
  const verb = oneIn(random, 3) ? pick(random, oddVerbs) : 'POST';
  const path = oneIn(random, 3) ? pick(random, oddPaths) : pick(random, paths);
  const version = oneIn(random, 10) ? pick(random, ['HTTP/1.0', 'HTTP/2.0', 'HTTP/9', '']) : 'HTTP/1.1';
  const odd = Array.from({ length: 1 + below(random, 3) }, () => pick(random, oddHeaders));
  const request = withHead(
    [`${verb} ${path} ${version}`, 'Host: 127.0.0.1', ...odd, `Content-Length: ${body.length}`],
    body,
  );
  return oneIn(random, 3) ? breakBytes(random, request) : request;
}

/** The next attack over HTTP: pipelined requests with odd bodies, or requests that are none. */
export function generateHttp(random: Random): FuzzCase {
  const bodies = Array.from({ length: oneIn(random, 4) ? 1 + below(random, maxFrames) : 1 }, () =>
    generateBody(random),
  );
  if (!oneIn(random, 3)) {
    return { transport: 'http', bytes: Buffer.concat(bodies.map((body) => wrap(random, body))), bodies };
  }
  return { transport: 'http', bytes: Buffer.concat(bodies.map((body) => wrapBadly(random, body))), bodies: null };
}

/** The next attack over stdio: lines, each of them odd. */
export function generateStdio(random: Random): FuzzCase {
  const lines = Array.from({ length: 1 + below(random, maxFrames) }, () => generateBody(random));
  const bytes = Buffer.concat(lines.flatMap((line) => [line, Buffer.from(oneIn(random, 10) ? '\r\n' : '\n')]));
  return { transport: 'stdio', bytes, bodies: null };
}
