/** Owns judging every text that leaves the server: the protocol's schema, and what the contract asks beyond it. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const schemaUrl = new URL('../../contract/rcp-1.0.schema.json', import.meta.url);
const schema = JSON.parse(readFileSync(schemaUrl, 'utf8')) as { $id: string };

// Ids beyond double precision read as Infinity here; that no other number does is checked below.
const ajv = new Ajv2020({ strict: false, strictNumbers: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema(schema);
const isFrame = ajv.compile({ $ref: schema.$id });
const isResultFor = ajv.compile({ $ref: `${schema.$id}#/$defs/ResultFor` });

/** Every code that this server may answer with. */
const codes: ReadonlySet<number> = new Set([
  -32700, -32600, -32602, -32603, -32001, -32002, -32003, -32004, -32005, -32006, -32010, -32011, -32012, -32013,
  -32014,
]);

/** What is wrong with one text of the server; nothing where it is a frame, or an array of them. */
export function frameProblems(text: string): string[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return ['it is not JSON'];
  }
  const problems = isFrame(value) ? [] : [`schema: ${ajv.errorsText(isFrame.errors)}`];
  if (/[\n\r\ufeff]/.test(text)) problems.push('it holds a line break or a byte order mark');
  for (const frame of Array.isArray(value) ? value : [value]) problems.push(...memberProblems(frame));
  return problems;
}

function memberProblems(frame: unknown): string[] {
  if (typeof frame !== 'object' || frame === null) return ['a member is not an object'];
  const { error, result } = frame as { error?: { code?: unknown; message?: unknown }; result?: unknown };
  const problems: string[] = [];
  if (error !== undefined) {
    if (typeof error.code !== 'number' || !codes.has(error.code))
      problems.push(`code ${String(error.code)} is not RCP's`);
    if (typeof error.message !== 'string' || error.message === '') problems.push('an error has no message');
    if (/\bat .+:\d+:\d+|\/src\/|\/dist\//.test(JSON.stringify(error)))
      problems.push('an error shows a stack or a path');
  }
  if (!isFinite(error) || !isFinite(result)) problems.push('it holds null or a number that is not finite');
  return problems;
}

/** True where no value at any depth is null or beyond the doubles; a nonce comes back as it was sent. */
function isFinite(value: unknown): boolean {
  if (value === null) return false;
  if (typeof value === 'number') return Number.isFinite(value);
  return (
    typeof value !== 'object' || Object.entries(value).every(([name, member]) => name === 'nonce' || isFinite(member))
  );
}

/** What is wrong with the result of a method by the schema's table of results. */
export function resultProblems(method: string, result: unknown): string[] {
  // The schema knows rows of numbers only, the server also offers them as base64 (decision MV-03).
  if (method === 'embed/multi' && (result as { encoding?: unknown }).encoding === 'f32-base64') return [];
  if (!isResultFor({ method, result })) return [`result of ${method}: ${ajv.errorsText(isResultFor.errors)}`];
  return [];
}
