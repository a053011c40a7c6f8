/** Owns the rules of the variables that name a Python package index. */
import { describe, expect, it } from 'vitest';
import { readPythonIndex } from '../../../src/config/python-index.ts';

describe('variables of the Python package index', () => {
  it('without any, the public index, asked directly', () => {
    expect(readPythonIndex({ PIP_INDEX_URL: ' ' })).toEqual({
      endpoint: 'https://pypi.org/simple',
      authorization: null,
      httpProxy: null,
      httpsProxy: null,
      noProxy: '',
    });
  });

  it('pip’s is stronger than uv’s, and loses its last slashes', () => {
    const variables = {
      PIP_INDEX_URL: 'https://mirror.example/pypi/simple//',
      UV_INDEX_URL: 'https://uv.example/simple',
    };
    expect(readPythonIndex(variables).endpoint).toBe('https://mirror.example/pypi/simple');
    expect(readPythonIndex({ ...variables, PIP_INDEX_URL: '' }).endpoint).toBe('https://uv.example/simple');
  });

  it('a name and a password leave the address and become a header', () => {
    const { endpoint, authorization } = readPythonIndex({ PIP_INDEX_URL: 'https://me:p%40ss@mirror.example/simple' });
    expect(endpoint).toBe('https://mirror.example/simple');
    expect(authorization).toBe(`Basic ${Buffer.from('me:p@ss').toString('base64')}`);
  });

  it('everything wrong is named at once, and no value is shown', () => {
    const read = () => readPythonIndex({ UV_INDEX_URL: 'file:///secret', HTTPS_PROXY: 'socks4://secret@h' });
    expect(read).toThrow('UV_INDEX_URL: must be an http:// or https:// address\nHTTPS_PROXY: must be');
    expect(read).not.toThrow(/secret/u);
  });
});
