/** Owns the rules of the variables that tools around the hub share. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isHubOffline, readHubSettings } from '../../../src/config/hub.ts';
import type { ConfigurationError } from '../../../src/errors.ts';

describe('variables of the hub', () => {
  it('without any, the public hub and the cache that all tools use', () => {
    expect(readHubSettings({})).toEqual({
      endpoint: 'https://huggingface.co',
      token: null,
      cacheDir: join(homedir(), '.cache/huggingface/hub'),
      httpProxy: null,
      httpsProxy: null,
      noProxy: '',
    });
  });

  it('HF_HUB_CACHE is stronger than HF_HOME, which is stronger than XDG_CACHE_HOME', () => {
    const variables = { HF_HUB_CACHE: '/a', HF_HOME: '/b', XDG_CACHE_HOME: '/c' };
    expect(readHubSettings(variables).cacheDir).toBe('/a');
    expect(readHubSettings({ ...variables, HF_HUB_CACHE: '' }).cacheDir).toBe('/b/hub');
    expect(readHubSettings({ XDG_CACHE_HOME: '/c' }).cacheDir).toBe('/c/huggingface/hub');
  });

  it('an endpoint loses its last slashes, a token its blanks, proxies may lack their scheme', () => {
    const variables = { HF_ENDPOINT: 'https://mirror.example/hf//', HF_TOKEN: ' hf_x\n', https_proxy: 'proxy:3128' };
    expect(readHubSettings(variables)).toMatchObject({
      endpoint: 'https://mirror.example/hf',
      token: 'hf_x',
      httpsProxy: 'http://proxy:3128',
      httpProxy: null,
    });
  });

  it('everything wrong is named at once, and no value is shown', () => {
    const secrets = { HF_ENDPOINT: 'ftp://secret', HF_TOKEN: 'hf_sec\u0000ret', HTTPS_PROXY: 'socks4://user:secret@h' };
    try {
      readHubSettings(secrets);
      expect.unreachable();
    } catch (error) {
      const { problems } = error as ConfigurationError;
      expect(problems.map((problem) => problem.split(':')[0])).toEqual(['HF_ENDPOINT', 'HF_TOKEN', 'HTTPS_PROXY']);
      expect(problems.join()).not.toMatch(/secret|sec/u);
    }
  });

  it.each(['1', 'true', 'YES', 'On'])('HF_HUB_OFFLINE=%s forbids the network', (value) => {
    expect(isHubOffline({ HF_HUB_OFFLINE: value })).toBe(true);
  });

  it.each(['0', 'false', '', undefined])('HF_HUB_OFFLINE=%s does not', (value) => {
    expect(isHubOffline({ HF_HUB_OFFLINE: value })).toBe(false);
  });
});
