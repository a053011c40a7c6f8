import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isLoopbackHost, loadSettings, printableSettings } from '../../../src/config/load.ts';
import { ConfigurationError } from '../../../src/errors.ts';

const folder = mkdtempSync(join(tmpdir(), 'settings-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

let written = 0;
function fileWith(content: string): string {
  const file = join(folder, `${(written += 1)}.json`);
  writeFileSync(file, content);
  return file;
}

interface Given {
  flags?: Record<string, unknown>;
  environment?: Record<string, string>;
  file?: object | string;
  unknownArguments?: string[];
}

function load({ flags = {}, environment = {}, file, unknownArguments = [] }: Given) {
  const configFile = file === undefined ? null : fileWith(typeof file === 'string' ? file : JSON.stringify(file));
  return loadSettings({ flags, environment, configFile, unknownArguments });
}

function problemsOf(given: Given): readonly string[] {
  try {
    load(given);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
  return [];
}

describe('the strength of the sources', () => {
  const flags = { port: '1' };
  const environment = { TRIVEC_PORT: '2' };
  const file = { port: 3 };

  it.each([
    { given: { flags, environment, file }, port: 1, why: 'a flag beats all' },
    { given: { environment, file }, port: 2, why: 'a variable beats the file' },
    { given: { file }, port: 3, why: 'the file beats the default' },
    { given: {}, port: 8000, why: 'the default is there for the rest' },
    { given: { flags: { port: undefined }, environment }, port: 2, why: 'a flag that was not given is no flag' },
    { given: { environment: { TRIVEC_PORT: '' }, file }, port: 3, why: 'an empty variable is not set' },
  ])('is such that $why', ({ given, port }) => {
    expect(load(given).settings.port).toBe(port);
  });
});

describe('values', () => {
  it.each([
    ['stdio', 'true', true],
    ['stdio', '1', true],
    ['stdio', 'false', false],
    ['stdio', '0', false],
    ['stdio', true, true],
    ['port', '0', 0],
    ['port', 65_535, 65_535],
    ['corsOrigins', 'https://a.example, https://b.example', ['https://a.example', 'https://b.example']],
    ['corsOrigins', ['https://a.example'], ['https://a.example']],
    ['allowedHosts', 'a.example', ['a.example']],
    [
      'corsOrigins',
      ['https://a.example', 'https://b.example,https://c.example'],
      ['https://a.example', 'https://b.example', 'https://c.example'],
    ],
    ['embedModel', 'org/a@v1, b', ['org/a@v1', 'b']],
    ['embedModel', ['a', 'b,c'], ['a', 'b', 'c']],
    ['embedModel', 'none', []],
    ['embedModel', ['none'], []],
    ['embedModel', [], []],
    ['apiKey', 'k', ['k']],
    ['apiKey', ['old', 'new, k w'], ['old', 'new', 'k w']],
  ])('of %s may be written %j', (key, value, expected) => {
    expect(load({ flags: { [key]: value } }).settings).toMatchObject({ [key]: expected });
  });

  it.each([
    ['port', '65536'],
    ['port', '-1'],
    ['port', '1.5'],
    ['port', 'http'],
    ['port', ''],
    ['port', ' '],
    ['port', null],
    ['port', true],
    ['port', [8000]],
    ['port', '0x10'],
    ['maxBatchTokens', 0],
    ['maxBatchTokens', '1e400'],
    ['stdio', 'yes'],
    ['stdio', 1],
    ['host', ''],
    ['host', 5],
    ['device', 'tpu'],
    ['device', 'auto,cuda'],
    ['device', 'cuda:0,cpu'],
    ['rerankDevice', 'cuda:x'],
    ['rerankDevice', ''],
    ['device', 5],
    ['precision', 'INT8'],
    ['corsOrigins', 'a,,b'],
    ['corsOrigins', 5],
    ['embedModel', 'a,none'],
    ['embedModel', ''],
    ['embedModel', 'a,'],
    ['embedModel', 5],
    ['embedModel', null],
    ['apiKey', ''],
    ['apiKey', 'a,,b'],
    ['apiKey', []],
    ['socket', ''],
    ['socket', `/${'x'.repeat(107)}`],
    ['socket', '/a\0b'],
    ['socketMode', '0600'],
    ['socketMode', '668'],
    ['socketMode', 600],
    ['keyRequestsPerSecond', 0.5],
    ['logLevel', null],
  ])('of %s must not be %j', (key, value) => {
    const flag = `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}: `;
    expect(problemsOf({ flags: { [key]: value } })).toEqual([expect.stringContaining(flag)]);
  });

  it('are frozen, lists too', () => {
    const { settings } = load({ flags: { corsOrigins: 'https://a.example', allowedHosts: 'a' } });
    expect(Object.isFrozen(settings)).toBe(true);
    expect(Object.isFrozen(settings.corsOrigins)).toBe(true);
    expect(Object.isFrozen(settings.allowedHosts)).toBe(true);
  });
});

describe('a start with problems', () => {
  it('names every problem at once, and where each came from', () => {
    const problems = problemsOf({
      flags: { port: 'x', device: 'tpu' },
      environment: { TRIVEC_DEADLINE_MS: '-5', TRIVEC_NOPE: '1' },
      file: { maxBatchItems: 0, colour: 'red' },
    });
    expect(problems).toHaveLength(6);
    for (const origin of [
      '--port: ',
      '--device: ',
      'TRIVEC_DEADLINE_MS: ',
      'TRIVEC_NOPE',
      'key maxBatchItems in the config file: ',
      'unknown key colour',
    ]) {
      expect(problems.some((problem) => problem.includes(origin))).toBe(true);
    }
  });

  it.each(['[]', '5', 'null', '{"port":', ''])('refuses the config file %j', (content) => {
    expect(problemsOf({ file: content })).toEqual([expect.stringMatching(/^config file /)]);
  });

  it('refuses a config file that is not there', () => {
    expect(() => loadSettings({ flags: {}, environment: {}, configFile: join(folder, 'nowhere.json') })).toThrow(
      /nowhere\.json/,
    );
  });

  it('refuses unknown keys of the file, inherited names among them', () => {
    const file = '{"__proto__": {"port": 1}, "constructor": 1, "toString": 2}';
    expect(problemsOf({ file })).toEqual(
      ['__proto__', 'constructor', 'toString'].map((key) => expect.stringContaining(`unknown key ${key}`)),
    );
  });

  it('refuses to serve neither embed nor rerank, because the protocol asks for one of them', () => {
    const flags = { embedModel: 'none', multiModel: 'none', rerankModel: 'none' };
    expect(problemsOf({ flags })).toEqual([expect.stringContaining('at least one of')]);
    expect(problemsOf({ flags: { ...flags, multiModel: ['x'] } })).toEqual([]);
    expect(problemsOf({ flags: { ...flags, rerankModel: 'x' } })).toEqual([]);
  });

  it('never repeats a secret', () => {
    const problems = problemsOf({
      flags: { apiKey: 5, port: 'geheim' },
      environment: { TRIVEC_DEVICE: 'geheim-und-lang' },
    });
    expect(problems.join('\n')).not.toContain('geheim');
  });
});

describe('variables of others', () => {
  const injected = {
    TRIVEC_PORT: 'tcp://10.0.0.1:8000',
    TRIVEC_SERVICE_HOST: '10.0.0.1',
    TRIVEC_SERVICE_PORT: '8000',
    TRIVEC_SERVICE_PORT_HTTP: '8000',
    TRIVEC_PORT_8000_TCP: 'tcp://10.0.0.1:8000',
    TRIVEC_PORT_8000_TCP_PROTO: 'tcp',
    TRIVEC_PORT_8000_TCP_PORT: '8000',
    TRIVEC_PORT_8000_TCP_ADDR: '10.0.0.1',
    TRIVEC_METRICS_SERVICE_HOST: '10.0.0.2',
    TRIVEC_METRICS_PORT: 'tcp://10.0.0.2:9000',
  };

  it('that Kubernetes injects are ignored with one warning that names them', () => {
    const { settings, warnings } = load({ environment: injected });
    expect(settings.port).toBe(8000);
    expect(warnings).toHaveLength(1);
    for (const name of Object.keys(injected)) expect(warnings[0]).toContain(name);
  });

  it('without our prefix are none of our business', () => {
    expect(load({ environment: { PATH: '/bin', PORT: '1', trivec_port: '2' } })).toMatchObject({
      warnings: [],
      settings: { port: 8000 },
    });
  });

  it('a port that is a number is a setting all the same', () => {
    expect(load({ environment: { ...injected, TRIVEC_PORT: '9' } }).settings.port).toBe(9);
  });
});

describe('the bind', () => {
  it.each([
    ['0.0.0.0', {}, 1],
    ['::', {}, 1],
    ['trivec.example', {}, 1],
    ['0.0.0.0', { apiKey: 'k' }, 0],
    ['0.0.0.0', { stdio: 'true' }, 0],
    ['0.0.0.0', { apiKeyFile: 'f' }, 0],
    ['127.0.0.1', {}, 0],
    ['127.0.0.2', {}, 0],
    ['::1', {}, 0],
    ['localhost', {}, 0],
  ])('to %s with %j gives %d warnings', (host, flags, count) => {
    expect(load({ flags: { host, ...flags } }).warnings).toHaveLength(count);
  });

  it('is loopback only for addresses that are', () => {
    expect(['127.0.0.1', '127.255.0.3', '::1', 'localhost'].map(isLoopbackHost)).toEqual([true, true, true, true]);
    expect(['0.0.0.0', '10.0.0.1', '127.evil.example', ''].map(isLoopbackHost)).toEqual([false, false, false, false]);
  });
});

describe('contradictions', () => {
  it.each<[Given, string]>([
    [{ flags: { socket: '/s', port: '8000' } }, '--socket and --port exclude each other'],
    [{ flags: { socket: '/s', host: '0.0.0.0' } }, '--socket and --host exclude each other'],
    [{ environment: { TRIVEC_SOCKET: '/s', TRIVEC_PORT: '1' } }, '--socket and --port exclude each other'],
    [{ file: { socket: '/s' }, environment: { TRIVEC_PORT: '1' } }, '--socket and --port exclude each other'],
    [{ flags: { socket: '/s', stdio: 'true' } }, '--socket and --stdio exclude each other'],
    [{ flags: { socket: '/s', tlsCert: 'c', tlsKey: 'k' } }, '--socket and --tls-cert exclude each other'],
    [{ flags: { stdio: 'true', tlsCert: 'c', tlsKey: 'k' } }, '--stdio and --tls-cert exclude each other'],
    [{ flags: { tlsCert: 'c' } }, '--tls-cert and --tls-key need each other'],
    [{ flags: { tlsKey: 'k' } }, '--tls-cert and --tls-key need each other'],
    [{ flags: { keyRequestsPerSecond: '5' } }, '--key-requests-per-second needs --api-key'],
    [{ flags: { keyRequestBurst: '5' } }, '--key-request-burst needs --api-key'],
    [{ flags: { keyQueuedTokens: '5' } }, '--key-queued-tokens needs --api-key'],
  ])('of %j are one problem each', (given, problem) => {
    expect(problemsOf(given)).toEqual([expect.stringContaining(problem)]);
  });

  it.each<Given>([
    { flags: { socket: '/s' }, environment: { TRIVEC_HOST: '0.0.0.0', TRIVEC_PORT: '8000' } },
    { environment: { TRIVEC_SOCKET: '/s' }, file: { port: 1 } },
    { flags: { socket: '/s', apiKey: 'k', keyRequestsPerSecond: '5', keyQueuedTokens: '5' } },
    { flags: { apiKeyFile: 'f', keyRequestBurst: '5' } },
    { flags: { tlsCert: 'c', tlsKey: 'k', port: '8443' } },
  ])('are none: %j', (given) => {
    expect(problemsOf(given)).toEqual([]);
  });
});

describe('settings that are printed', () => {
  it('hide the key, and show that there is none', () => {
    expect(printableSettings(load({ flags: { apiKey: 'geheim' } }).settings)['apiKey']).toBe('(hidden)');
    expect(printableSettings(load({}).settings)['apiKey']).toBeNull();
  });

  it('show everything else', () => {
    const { settings } = load({});
    expect(printableSettings(settings)).toEqual(settings);
  });
});

describe('ranges and arguments', () => {
  it('a number out of range is told with its bound', () => {
    expect(problemsOf({ flags: { port: '99999' } })).toEqual(['--port: must be at most 65535']);
    expect(problemsOf({ flags: { deadlineMs: '0' } })).toEqual(['--deadline-ms: must be at least 1']);
  });

  it('origins and hosts that could never match are refused', () => {
    expect(problemsOf({ flags: { corsOrigins: 'https://a.b/path' } })).toHaveLength(1);
    expect(problemsOf({ flags: { allowedHosts: 'http://x' } })).toHaveLength(1);
    expect(problemsOf({ flags: { corsOrigins: 'https://a.b:8443,http://localhost:3000' } })).toEqual([]);
  });

  it('an unknown argument is told beside the other problems', () => {
    expect(problemsOf({ flags: { port: 'x' }, unknownArguments: ['--foo'] })).toEqual([
      'unknown argument --foo; see --help',
      '--port: must be a number',
    ]);
  });
});
