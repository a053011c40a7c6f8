import { afterEach, describe, expect, it, vi } from 'vitest';
import { createProgram } from '../../../src/cli/program.ts';
import { flagOf } from '../../../src/config/names.ts';
import { settingsSchema } from '../../../src/config/settings.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** What the program writes to stdout and stderr, and how it ended. */
async function run(...words: string[]): Promise<{ stdout: string; stderr: string; error: unknown }> {
  let stdout = '';
  let stderr = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += String(text);
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += String(text);
    return true;
  });
  let error: unknown = null;
  try {
    await createProgram('1.2.3').parseAsync(['node', 'trivec', ...words]);
  } catch (thrown) {
    error = thrown;
  }
  vi.restoreAllMocks();
  return { stdout, stderr, error };
}

async function settingsOf(...words: string[]): Promise<Record<string, unknown>> {
  const { stdout, error } = await run(...words, '--print-config');
  expect(error).toBeNull();
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe('the command line', () => {
  it('serves where no command is named', async () => {
    expect(await settingsOf('--port', '0')).toEqual(await settingsOf('serve', '--port', '0'));
  });

  it('hands every value to the schema as it was typed', async () => {
    expect(
      await settingsOf(
        '--port',
        '9',
        '--stdio',
        '--cors-origins',
        'https://a.example,https://b.example',
        '--device=cpu',
      ),
    ).toMatchObject({ port: 9, stdio: true, corsOrigins: ['https://a.example', 'https://b.example'], device: ['cpu'] });
  });

  it('takes a truth value with and without a word', async () => {
    expect(await settingsOf('--metrics-open', 'false')).toMatchObject({ metricsOpen: false });
    expect(await settingsOf('--metrics-open', 'true')).toMatchObject({ metricsOpen: true });
    expect(await settingsOf('--metrics-open')).toMatchObject({ metricsOpen: true });
  });

  it('takes a list as one word, as several, or both', async () => {
    expect(await settingsOf('--embed-model', 'a', '--embed-model', 'b,c', '--sparse-model', 'none')).toMatchObject({
      embedModel: ['a', 'b', 'c'],
      sparseModel: [],
    });
  });

  it('has one command for models, with all that can be done to them', () => {
    const models = createProgram('1').commands.filter((command) => command.name() === 'models');
    expect(models).toHaveLength(1);
    const names = ['pull', 'list', 'inspect', 'quantize', 'verify'];
    expect(models[0]?.commands.map((command) => command.name())).toEqual(names);
  });

  it('never prints the key', async () => {
    const { stdout, stderr } = await run('--api-key', 'geheim', '--print-config');
    expect(JSON.parse(stdout)).toMatchObject({ apiKey: '(hidden)' });
    expect(stdout + stderr).not.toContain('geheim');
  });

  it('lists every setting in the help of serve', async () => {
    const { stdout, error } = await run('serve', '--help');
    expect(error).toMatchObject({ exitCode: 0 });
    const flat = stdout.replace(/\s+/g, ' ');
    for (const key of Object.keys(settingsSchema.shape)) expect(flat).toContain(`${flagOf(key)} `);
  });

  it('tells its version', async () => {
    expect((await run('--version')).stdout).toBe('1.2.3\n');
  });

  it('refuses unknown flags and commands, and says where help is', async () => {
    for (const words of [['serve', '--no-such-flag'], ['serve', '--colour=red'], ['nonsense']]) {
      const word = words.at(-1) ?? '';
      const { error } = await run(...words);
      expect(error).toMatchObject({ name: 'ConfigurationError', problems: [`unknown argument ${word}; see --help`] });
    }
  });

  it('names every bad value at once', async () => {
    const { error } = await run('--port', 'x', '--device', 'tpu', '--print-config');
    expect(error).toMatchObject({ problems: [expect.stringMatching(/^--port/), expect.stringMatching(/^--device/)] });
  });
});
