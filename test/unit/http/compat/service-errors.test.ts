import { describe, expect, it } from 'vitest';
import { errorCatalogue, invalidField, ServiceError, type ErrorName } from '../../../../src/errors.ts';
import { cohereFamily } from '../../../../src/http/compat/cohere.ts';
import { jinaFamily } from '../../../../src/http/compat/jina.ts';

const names = Object.keys(errorCatalogue) as ErrorName[];
const statusOf = (error: ServiceError) => cohereFamily.errorAnswer(error).status;

describe('errors of Cohere and Jina', () => {
  it.each(names)('%s is an error status, with the message where each client looks for it', (name) => {
    const error = new ServiceError(name, 'field: what is wrong');
    const cohere = cohereFamily.errorAnswer(error);
    const jina = jinaFamily.errorAnswer(error);
    expect(cohere.status).toBeGreaterThanOrEqual(400);
    expect(jina.status).toBe(cohere.status);
    expect(JSON.parse(String(cohere.body))).toEqual({ id: expect.any(String), message: 'field: what is wrong' });
    expect(JSON.parse(String(jina.body))).toMatchObject({
      detail: 'field: what is wrong',
      message: 'field: what is wrong',
    });
  });

  it('the statuses that clients act on are those of the services', () => {
    const of = (name: ErrorName) => statusOf(new ServiceError(name, 'x'));
    expect(of('unauthorized')).toBe(401);
    expect(of('overloaded')).toBe(429);
    expect(of('unavailable')).toBe(503);
    expect(of('deadlineExceeded')).toBe(504);
    expect(of('tooLarge')).toBe(413);
    expect(of('internal')).toBe(500);
    expect(statusOf(invalidField('texts', 'must be a list'))).toBe(400);
    expect(statusOf(new ServiceError('unsupportedOption', 'x', { field: 'truncate', option: 'LEFT' }))).toBe(400);
    expect(statusOf(new ServiceError('unsupportedOption', 'x', { field: 'model', option: 'other' }))).toBe(404);
  });

  it('overload says when to come back, in whole seconds and at least one', () => {
    const headersAt = (retryAfterMs?: number) =>
      cohereFamily.errorAnswer(new ServiceError('overloaded', 'x', { retryAfterMs })).headers;
    expect(headersAt(1200)).toEqual({ 'Retry-After': '2' });
    expect(headersAt(3)).toEqual({ 'Retry-After': '1' });
    expect(headersAt(0)).toEqual({ 'Retry-After': '1' });
    expect(headersAt()).toEqual({ 'Retry-After': '1' });
    expect(jinaFamily.errorAnswer(new ServiceError('internal', 'x')).headers).toEqual({});
  });

  it('the value of an option that is not supported is in the message, cut where it is long', () => {
    const error = new ServiceError('unsupportedOption', 'truncate: use END', { option: 'L'.repeat(500) });
    const { message } = JSON.parse(String(cohereFamily.errorAnswer(error).body)) as { message: string };
    expect(message).toBe(`truncate: use END (received "${'L'.repeat(64)}")`);
  });
});
