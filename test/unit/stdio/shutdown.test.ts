import { describe, expect, it } from 'vitest';
import { namesShutdown } from '../../../src/stdio/shutdown.ts';

describe('a text that may end the session', () => {
  it.each([
    ['{"id":1,"method":"shutdown"}', true],
    ['{"id":1,"method" :\t"shutdown","params":{}}', true],
    ['[{"id":1,"method":"ping"},{"id":2,"method":"shutdown"}]', true],
    ['{"id":1,"method":"\\u0073hutdow\\u006E"}', true],
    ['{"id":1,"\\u006dethod":"shutdown"}', true],
    ['{"id":1,"method":"embed","params":{"inputs":["shutdown"]}}', false],
    [JSON.stringify({ id: 1, method: 'embed', params: { inputs: ['{"method":"shutdown"}'] } }), false],
    ['{"id":1,"method":"Shutdown"}', false],
    ['{"id":1,"method":"shutdown/now"}', false],
    ['{"id":1,"method":"embed","params":{"inputs":["\\u0073hutdown \\u00e9"]}}', false],
  ])('%s: %s', (text, expected) => {
    expect(namesShutdown(text)).toBe(expected);
  });
});
