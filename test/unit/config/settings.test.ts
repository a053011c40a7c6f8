import { describe, expect, it } from 'vitest';
import { describeSettings } from '../../../src/config/describe.ts';
import { loadSettings } from '../../../src/config/load.ts';
import { flagOf, variableOf } from '../../../src/config/names.ts';
import { settingsMeta, settingsSchema } from '../../../src/config/settings.ts';

const keys = Object.keys(settingsSchema.shape);
const { settings: defaults } = loadSettings({ flags: {}, environment: {}, configFile: null });

/** Names that scripts rely on. */
const promised = [
  ...['TRIVEC_HOST', 'TRIVEC_PORT', 'TRIVEC_API_KEY', 'TRIVEC_CORS_ORIGINS', 'TRIVEC_HTTP_SESSION'],
  ...['TRIVEC_DEADLINE_MS', 'TRIVEC_BODY_LIMIT_BYTES', 'TRIVEC_MAX_BATCH_MEMBERS', 'TRIVEC_DEVICE'],
  ...['TRIVEC_MODELS_DIR', 'TRIVEC_CACHE_DIR', 'TRIVEC_LOG_LEVEL', 'TRIVEC_ALLOWED_HOSTS'],
];

describe('the names of a setting', () => {
  it.each([
    ['port', '--port', 'TRIVEC_PORT'],
    ['maxBatchTokens', '--max-batch-tokens', 'TRIVEC_MAX_BATCH_TOKENS'],
  ])('%s -> %s, %s', (key, flag, variable) => {
    expect(flagOf(key)).toBe(flag);
    expect(variableOf(key)).toBe(variable);
  });

  it('are different for different keys, and lead back to the key', () => {
    expect(new Set(keys.map(flagOf)).size).toBe(keys.length);
    expect(new Set(keys.map(variableOf)).size).toBe(keys.length);
    const backFromFlag = (flag: string) => flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
    const backFromVariable = (name: string) =>
      name
        .slice('TRIVEC_'.length)
        .toLowerCase()
        .replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    expect(keys.map((key) => backFromFlag(flagOf(key)))).toEqual(keys);
    expect(keys.map((key) => backFromVariable(variableOf(key)))).toEqual(keys);
  });

  it.each(promised)('include %s', (name) => {
    expect(keys.map(variableOf)).toContain(name);
  });
});

describe('the settings', () => {
  it.each(keys)('%s has a default that its own schema accepts', (key) => {
    const again = loadSettings({
      flags: { [key]: defaults[key as keyof typeof defaults] },
      environment: {},
      configFile: null,
    });
    expect(again.settings).toEqual(defaults);
  });

  it('have the defaults that the contract fixes', () => {
    expect(defaults).toMatchObject({
      host: '127.0.0.1',
      port: 8000,
      batchLimit: 2048,
      maxCandidates: 1024,
      maxBatchMembers: 64,
      bodyLimitBytes: 33_554_432,
      deadlineMs: 25_000,
      httpSession: 'stateless',
      apiKey: null,
      corsOrigins: [],
    });
  });

  it('answer within the thirty seconds that clients wait', () => {
    expect(defaults.deadlineMs).toBeLessThan(30_000);
  });
});

describe('the description', () => {
  const described = describeSettings();

  it('covers every setting, in order', () => {
    expect(described.map(({ key }) => key)).toEqual(keys);
    expect([...settingsMeta.keys()]).toEqual(keys);
  });

  it.each(described)('of $key is a sentence, with a default and a form', ({ description, defaultText, valueText }) => {
    expect(description).toMatch(/^[\w`].*\.$/s);
    expect(defaultText).not.toMatch(/^$|undefined|null|\[object/);
    expect(valueText).not.toBe('');
  });

  it.each([
    ['stdio', null, 'false'],
    ['port', 'number', '8000'],
    ['device', 'list', 'auto'],
    ['rerankDevice', 'list', 'unset'],
    ['corsOrigins', 'list', 'none'],
    ['allowedHosts', 'list', 'unset'],
    ['embedModel', 'list', 'all-MiniLM-L6-v2'],
    ['rerankModel', 'list', 'none'],
    ['apiKey', 'list', 'unset'],
    ['cacheDir', 'text', '`~/.cache/trivec`'],
  ])('of %s takes %s and says that the default is %s', (key, valueText, defaultText) => {
    expect(described.find((each) => each.key === key)).toMatchObject({ valueText, defaultText });
  });
});
