/** Owns what holds of every parser of requests and settings, whatever comes. */
import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConfigurationError, ServiceError } from '../../src/errors.ts';
import { readSettings } from '../../src/config/load.ts';
import { settingsMeta } from '../../src/config/settings.ts';
import { variableOf } from '../../src/config/names.ts';
import { readPythonIndex } from '../../src/config/python-index.ts';
import { parseWanted } from '../../src/device/wanted.ts';
import { chooseFormat } from '../../src/http/accept.ts';
import { decodeBody, isEncoded, readBody } from '../../src/http/body.ts';
import { isHostAllowed, isHostWellFormed, isOriginAllowed } from '../../src/http/origin.ts';
import { pathMethodOf, rawPathOf } from '../../src/http/path.ts';
import { readCallOptions, readVectorForm } from '../../src/rpc/options.ts';
import { readKind, readLenientObject, readParams, readText, readTexts } from '../../src/rpc/params.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const secret = 'zq7secret';
/** Values as JSON can bring them, with the names that matter among their members. */
const names = fc.constantFrom('inputs', 'texts', 'query', 'type', 'text', 'kind', 'encoding', 'strict', 'x-trivec');
const vendorNames = fc.constantFrom('truncate', 'dimensions', 'priority', 'output', 'model', '__proto__', 'x');
const leaf = fc.oneof(
  fc.constantFrom<unknown>(null, true, -1, 0, 1.5, 1e300, '', 'json', 'f32-base64', 'int8', 'bulk', 'text', 'query'),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const value = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('any'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(names, vendorNames, fc.string({ maxLength: 3 })), tie('any'), { maxKeys: 5 }),
  ),
})).any;

/** True for a value or a refusal for the caller; anything else is thrown on. */
function refusesOrGives(read: () => unknown): boolean {
  try {
    read();
    return true;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return ['invalidParams', 'unsupportedOption'].includes(error.errorName) && error.data.field !== undefined;
  }
}

describe('params of any shape', () => {
  it('are read or refused by the name of a field, by every reader', () => {
    const readers: ((given: unknown) => unknown)[] = [
      (given) => readCallOptions(readParams(given)),
      (given) => readVectorForm(readParams(given), null),
      (given) => readVectorForm(readParams(given), 'int8'),
      (given) => readKind(readParams(given)),
      (given) => readTexts(readParams(given), ['inputs', 'texts'], 'inputs').texts,
      (given) => readText(given, 'query'),
    ];
    fc.assert(
      fc.property(value, fc.constantFrom(...readers), (given, read) => {
        expect(refusesOrGives(() => read(given))).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('give options that are among those that are offered', () => {
    fc.assert(
      fc.property(fc.dictionary(vendorNames, value, { maxKeys: 5 }), (vendor) => {
        let options: ReturnType<typeof readCallOptions>;
        try {
          options = readCallOptions(readLenientObject({ 'x-trivec': vendor }));
        } catch {
          return;
        }
        expect([null, 'interactive', 'bulk']).toContain(options.lane);
        expect([null, 'int8', 'uint8', 'binary', 'ubinary']).toContain(options.output);
        expect(options.dimensions === null || Number.isSafeInteger(options.dimensions)).toBe(true);
      }),
    );
  });
});

describe('a body', () => {
  const read = async (chunks: readonly Buffer[], maxBytes: number) => {
    const stream = new PassThrough();
    const incoming = Object.assign(stream, { headers: {} }) as unknown as IncomingMessage;
    const limits = { maxBytes, keptBytes: maxBytes, isWanted: true, timeoutMs: 1000, claim: () => true };
    const outcome = readBody(incoming, limits, createFakeClock());
    for (const chunk of chunks) stream.write(chunk);
    stream.end();
    return outcome;
  };

  it('is the same however it is cut, and too large exactly when it is over the limit', async () => {
    const bytes = fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array));
    await fc.assert(
      fc.asyncProperty(bytes, fc.array(fc.nat(200), { maxLength: 8 }), fc.nat(200), async (whole, places, maxBytes) => {
        const edges = [0, ...places.map((at) => Math.min(at, whole.length)).sort((a, b) => a - b), whole.length];
        const outcome = await read(
          edges.slice(1).map((edge, at) => whole.subarray(edges[at], edge)),
          maxBytes,
        );
        if (whole.length > maxBytes) expect(outcome).toEqual({ kind: 'tooLarge' });
        else expect(outcome).toEqual({ kind: 'complete', bytes: whole });
      }),
    );
  });

  it('is text exactly when it is UTF-8', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (array) => {
        const bytes = Buffer.from(array);
        const text = decodeBody(bytes);
        const again = Buffer.from(text ?? bytes.toString('utf8'));
        const mark = Buffer.from('\ufeff');
        const isUtf8 = again.equals(bytes) || Buffer.concat([mark, again]).equals(bytes);
        expect(text !== null).toBe(isUtf8);
      }),
    );
  });
});

describe('headers and targets', () => {
  const header = fc.option(
    fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('localhost', '[::1]:80', 'a.b:65536')),
    {
      nil: undefined,
    },
  );

  it('are judged, whatever they hold', () => {
    const policy = { corsOrigins: ['https://app.example'], allowedHosts: ['svc'], isLoopbackBind: true };
    fc.assert(
      fc.property(header, (text) => {
        const format = chooseFormat({ accept: text, isBatch: false, hasProgressToken: () => true });
        expect(['json', 'eventStream']).toContain(format);
        expect([isHostWellFormed(text), isEncoded(text)].every((answer) => typeof answer === 'boolean')).toBe(true);
        // Nobody is let in by an accident of the text.
        if (text !== undefined && isHostAllowed(text, policy)) {
          expect(text.toLowerCase()).toMatch(/^(localhost|\[::1\]|127(\.\d{1,3}){3}|svc)(:\d*)?$/);
        }
        if (text !== undefined && isOriginAllowed(text, policy)) {
          expect(text.toLowerCase()).toMatch(/^https:\/\/app\.example\/?$/);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('a path that was encoded names its method again, whatever its letters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.constantFrom('', '?a=/b', '#c'), (method, tail) => {
        fc.pre(method !== 'batch');
        const path = rawPathOf(`http://localhost/rcp/${encodeURIComponent(method)}${tail}`);
        expect(pathMethodOf(path)).toBe(method);
      }),
    );
  });

  it('a path of any letters names some method or none', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (tail) => {
        const method = pathMethodOf(rawPathOf(`http://localhost/rcp/${tail}`));
        expect(method === null || method.length > 0).toBe(true);
      }),
    );
  });
});

describe('settings', () => {
  const keys = fc.constantFrom(...settingsMeta.keys());
  const given = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 12 }).filter((text) => !text.includes('\0')),
    fc.constantFrom('', '0', '-1', '1e9', '999999999999999999999', 'true', 'none', 'none,none', ',', 'cuda:0', 'auto'),
  );

  it('of any text are read or refused, and what is refused has its default', () => {
    fc.assert(
      fc.property(fc.dictionary(keys, given, { maxKeys: 5 }), (flags) => {
        const { settings, problems } = readSettings({ flags, environment: {}, configFile: null });
        expect(problems.every((problem) => typeof problem === 'string' && problem !== '')).toBe(true);
        expect(Object.keys(settings)).toEqual([...settingsMeta.keys()]);
      }),
      { numRuns: 200 },
    );
  });

  it('never show the value of a variable that they refuse', () => {
    fc.assert(
      fc.property(keys, fc.constantFrom('\n', ' ', ',', '-', '@'), (key, sign) => {
        const environment = { [variableOf(key)]: `${sign}${secret}${sign}${secret}` };
        const { problems } = readSettings({ flags: {}, environment, configFile: null });
        expect(problems.join('\n')).not.toContain(secret);
      }),
    );
  });

  it('devices of any text are understood or refused in one sentence', () => {
    const text = fc.oneof(fc.constantFrom('auto', 'cpu', 'cuda', 'cuda:0', 'cuda:1', 'webgpu', 'auto:0'), fc.string());
    fc.assert(
      fc.property(fc.array(text, { maxLength: 3 }), (texts) => {
        const parsed = parseWanted(texts);
        if ('problem' in parsed) expect(parsed.problem).not.toBe('');
        else expect(['auto', 'named']).toContain(parsed.kind);
      }),
    );
  });

  it('the address of a package index of any text is read or refused without showing it', () => {
    const address = fc.oneof(fc.string(), fc.webUrl(), fc.constant('https://user:%zz@host/simple'));
    fc.assert(
      fc.property(address, (text) => {
        const variables = { PIP_INDEX_URL: `${text}${secret}` };
        try {
          readPythonIndex(variables);
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigurationError);
          expect((error as Error).message).not.toContain(secret);
        }
      }),
    );
  });
});
