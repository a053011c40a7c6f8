import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { flagOf, variableOf } from '../../../src/config/names.ts';
import { settingsSchema } from '../../../src/config/settings.ts';
import { watchIntervalMs } from '../../../src/http/file-watch.ts';
import { maxKeys, parseKeyFile } from '../../../src/http/key-file.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');
const page = textOf('SECURITY.md');
const namesOf = (pattern: RegExp) => [...new Set([...page.matchAll(pattern)].map(([name]) => name))];
const keys = Object.keys(settingsSchema.shape);
/** Flags of `serve` that are no settings. */
const otherFlags = ['--config', '--print-config'];

describe('SECURITY.md', () => {
  it('names flags and variables that exist', () => {
    const flags = namesOf(/--[a-z][a-z-]+/g);
    expect(flags.length).toBeGreaterThan(20);
    expect([...keys.map(flagOf), ...otherFlags]).toEqual(expect.arrayContaining(flags));
    expect(keys.map(variableOf)).toEqual(expect.arrayContaining(namesOf(/TRIVEC_[A-Z_]+/g)));
  });

  it('names every setting of keys, certificates and sockets', () => {
    const isAbout = /^(key[A-Z]|apiKey|tls|socket|corsOrigins|allowedHosts)/;
    for (const key of keys.filter((name) => isAbout.test(name))) expect(page).toContain(`\`${flagOf(key)}`);
  });

  it('names metrics and scripts that exist', async () => {
    const metrics = (await createMetrics().registry.getMetricsAsJSON()).map(({ name }) => name);
    expect(metrics).toEqual(expect.arrayContaining(namesOf(/trivec_\w+/g)));
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: object };
    const called = [...page.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(called));
  });

  it('shows a file of keys that is one', () => {
    const [, example = ''] = /```\n([^]*?)```/.exec(page) ?? [];
    expect(parseKeyFile(example)).toMatchObject({ entries: [{ name: 'web' }, { name: 'nightly' }, { name: null }] });
  });

  it('says numbers and folders that are so', () => {
    expect(page).toContain(`at most ${maxKeys.toLocaleString('en')} keys`);
    expect(page).toContain(`every ${String(watchIntervalMs / 1000)} seconds`);
    const dockerfile = textOf('Dockerfile');
    expect(dockerfile).toContain('USER 10001:10001');
    for (const folder of ['/var/cache/trivec', '/models-data']) {
      expect(page).toContain(folder);
      expect(dockerfile).toContain(folder);
    }
    const compose = textOf('docker-compose.yml');
    for (const line of ['read_only: true', 'no-new-privileges:true', '- ALL', '127.0.0.1:8000']) {
      expect(compose).toContain(line);
    }
    expect(textOf('.npmrc')).toContain('ignore-scripts=true');
  });
});
