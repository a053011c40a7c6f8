import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { frameProblems, resultProblems } from '../support/harness/frame-check.ts';

const folder = fileURLToPath(new URL('.', import.meta.url));
const sections = JSON.parse(readFileSync(`${folder}requirements.json`, 'utf8')) as Record<string, string[]>;
const required = Object.values(sections).flat();

/** Ids at the start of the titles of tests, in every file of this folder. */
const tested = new Set(
  readdirSync(folder)
    .filter((name) => name.endsWith('.test.ts'))
    .flatMap((name) => [
      ...readFileSync(folder + name, 'utf8').matchAll(/\b(?:onBoth|onStdio|onHttp|it)\(\s*['"`]([A-Z]{1,2}-\d\d) /g),
    ])
    .map(([, id = '']) => id),
);

describe('the contract as a whole', () => {
  it('every requirement has a test that starts with its id', () => {
    expect(required.filter((id) => !tested.has(id))).toEqual([]);
  });

  it('no test names a requirement that does not exist', () => {
    expect([...tested].filter((id) => !required.includes(id))).toEqual([]);
  });

  it('no requirement is listed twice', () => {
    expect(new Set(required).size).toBe(required.length);
  });
});

describe('the check of every frame that is received', () => {
  it('accepts what a server may send', () => {
    for (const text of [
      '{"jsonrpc":"2.0","id":1,"result":{}}',
      '{"jsonrpc":"2.0","id":1e400,"result":{"nonce":1e400}}',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x","data":{"retryable":false}}}',
      '[{"jsonrpc":"2.0","id":"a","result":{"vectors":[[1,2]]}}]',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":0.5}}',
    ]) {
      expect(frameProblems(text), text).toEqual([]);
    }
  });

  it('refuses everything else', () => {
    for (const text of [
      '',
      'x',
      '[]',
      '1',
      '{"jsonrpc":"2.0","id":1}',
      '{"id":1,"result":{}}',
      '{"jsonrpc":"2.0","id":null,"result":{}}',
      '{"jsonrpc":"2.0","id":1,"result":[]}',
      '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32603,"message":"x"}}',
      '{"jsonrpc":"2.0","id":1,"result":{"vectors":[[null]]}}',
      '{"jsonrpc":"2.0","id":1,"result":{"vectors":[[1e400]]}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":""}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x","data":"text"}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x","data":{"field":5}}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Error at run (/srv/src/run.ts:10:5)"}}',
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1.5}}',
      '{"jsonrpc":"2.0","id":1,\n"result":{}}',
    ]) {
      expect(frameProblems(text), text).not.toEqual([]);
    }
  });

  it('holds each result against the shape of its method', () => {
    expect(resultProblems('embed', { vectors: [[1]], encoding: 'f32-base64' })).not.toEqual([]);
    expect(resultProblems('embed', {})).not.toEqual([]);
    expect(resultProblems('rerank', { scores: [1], order: [0.5] })).not.toEqual([]);
    expect(resultProblems('embed/multi', { matrices: [[['AAAA']]], encoding: 'json' })).not.toEqual([]);
    expect(resultProblems('embed/multi', { matrices: [[['AAAA']]], encoding: 'f32-base64', dimension: 1 })).toEqual([]);
    expect(resultProblems('rerank', { scores: [1], order: [0] })).toEqual([]);
  });
});
