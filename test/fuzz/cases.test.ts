/** Owns the replay of attacks that once broke a rule, or that stand for a class of them. */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCases } from '../../scripts/fuzz/case.ts';
import { attackHttp } from '../../scripts/fuzz/http-target.ts';
import { openStdioTarget, type StdioTarget } from '../../scripts/fuzz/stdio-target.ts';
import { startServed, type Served } from '../support/served.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cases = [...readCases()];
const of = (transport: string) => cases.filter(([, kept]) => kept.transport === transport);

describe('kept attacks over HTTP', () => {
  let server: Served;
  beforeAll(async () => {
    server = await startServed({ flags: ['--headers-timeout-ms', '2000', '--body-timeout-ms', '2000'] });
  });
  afterAll(async () => {
    expect(await server.end()).toBe(0);
  });

  it.each(of('http').map(([name, kept]) => ({ name, rule: kept.rule, kept })))('$name: $rule', async ({ kept }) => {
    expect(await attackHttp(Number(new URL(server.baseUrl).port), kept)).toEqual([]);
    expect(await server.call('ping', { nonce: 'next' })).toEqual({ nonce: 'next' });
  });
});

describe('kept attacks over stdio', () => {
  let target: StdioTarget;
  beforeAll(async () => {
    const variables = { PATH: process.env['PATH'], TRIVEC_CACHE_DIR: `${root}.cache/served` };
    target = await openStdioTarget({ entry: `${root}dist/main.js`, variables });
  });
  afterAll(async () => {
    expect(await target.end()).toBe(0);
  });

  it.each(of('stdio').map(([name, kept]) => ({ name, rule: kept.rule, kept })))('$name: $rule', async ({ kept }) => {
    expect(await target.attack(kept)).toEqual([]);
    expect(target.isAlive()).toBe(true);
  });
});
