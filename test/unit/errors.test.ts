import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ConfigurationError, errorCatalogue, invalidField, ServiceError } from '../../src/errors.ts';

const entries = Object.entries(errorCatalogue).map(([name, entry]) => ({ name, ...entry }));
/** What RCP/1 section 12 allows a server of this kind to send. */
const allowedCodes = [
  -32700, -32600, -32602, -32603, -32001, -32002, -32003, -32004, -32005, -32006, -32010, -32011, -32012, -32013,
  -32014,
];
const sourceFolder = fileURLToPath(new URL('../../src', import.meta.url));
const sources = readdirSync(sourceFolder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && name !== 'errors.ts')
  .map((name) => readFileSync(join(sourceFolder, name), 'utf8'));

describe('the error catalogue', () => {
  it('has exactly the codes of the protocol, each once', () => {
    expect(entries.map(({ code }) => code).sort((a, b) => a - b)).toEqual([...allowedCodes].sort((a, b) => a - b));
  });

  it.each(entries)('answers $name somewhere', ({ name }) => {
    const isUsed = sources.some((source) => source.includes(`'${name}'`));
    const isUsedByHelper = name === 'invalidParams' && sources.some((source) => source.includes('invalidField('));
    expect(isUsed || isUsedByHelper).toBe(true);
  });

  it.each(entries)('says in one sentence when $name is answered', ({ when }) => {
    expect(when).toMatch(/^[A-Z`][^\n]*\.$/);
  });

  it.each([
    ['notInitialized', true],
    ['unavailable', true],
    ['overloaded', true],
    ['deadlineExceeded', true],
    ['tooLarge', false],
    ['unauthorized', false],
    ['cancelled', false],
    ['internal', false],
    ['invalidParams', false],
  ] as const)('calls %s retryable: %s', (name, retryable) => {
    expect(errorCatalogue[name].retryable).toBe(retryable);
  });
});

describe('a service error', () => {
  it('carries its name, its data and its cause', () => {
    const cause = new Error('why');
    const error = new ServiceError('overloaded', 'full', { retryAfterMs: 50 }, cause);
    expect(error).toMatchObject({ errorName: 'overloaded', message: 'full', data: { retryAfterMs: 50 }, cause });
    expect('cause' in new ServiceError('internal', 'x')).toBe(false);
  });

  it('about a field names it in the message and in the data', () => {
    const error = invalidField('inputs[2]', 'must be a string', { limit: 3 });
    expect(error).toMatchObject({
      errorName: 'invalidParams',
      message: 'inputs[2]: must be a string',
      data: { field: 'inputs[2]', limit: 3 },
    });
  });

  it('about the configuration lists every problem', () => {
    const error = new ConfigurationError(['one', 'two']);
    expect(error.problems).toEqual(['one', 'two']);
    expect(error.message).toBe('one\ntwo');
  });
});
