import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canBecomeImageUser, layImageTree } from '../../support/image.ts';
import type { ImageTree } from '../../support/image.ts';
import { requirement } from '../../support/require.ts';

const user = requirement('setpriv', canBecomeImageUser, 'this user may not become the image’s user');
const prepareMs = 240_000;

describe.skipIf(user.skip)(user.title('the image’s start command, unprivileged on a read-only tree'), () => {
  let image: ImageTree;
  let server: ChildProcess;
  let output = '';
  let port: number;

  const call = async (method: string, params: object) => {
    const response = await fetch(`http://127.0.0.1:${port}/rcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return response.json();
  };

  beforeAll(async () => {
    image = layImageTree();
    server = image.start(['--port', '0']);
    port = await new Promise<number>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const line = /trivec listening on http:\/\/\S+:(\d+)\/rcp/.exec(output);
        if (line !== null) resolve(Number(line[1]));
      };
      server.stdout?.on('data', read);
      server.stderr?.on('data', read);
      server.on('exit', (code) => reject(new Error(`exit ${code} before it listened: ${output}`)));
    });
  }, prepareMs);

  afterAll(() => {
    server.kill('SIGKILL');
    image.remove();
  });

  it('has none of root’s rights: neither as user nor by capability nor over its own files', () => {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    expect(/^Uid:\t(.*)$/m.exec(status)?.[1]?.split('\t')).toEqual(Array(4).fill(image.uid));
    expect(/^CapEff:\t(.*)$/m.exec(status)?.[1]).toMatch(/^0+$/);
    for (const folder of ['app', 'app/models', 'cache']) expect(image.tryToWrite(folder), folder).not.toBe(0);
  });

  it('answers with vectors', async () => {
    expect(await call('ping', {})).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    expect(await call('embed', { inputs: ['hello'] })).toMatchObject({ result: { vectors: [expect.any(Array)] } });
  });

  it('the health check sees it ready, and SIGTERM ends it with exit code 0', async () => {
    expect(image.run('/app/health.js', { TRIVEC_PORT: String(port) })).toBe(0);
    const ended = new Promise((resolve) => server.once('exit', (code, signal) => resolve(code ?? signal)));
    server.kill('SIGTERM');
    expect(await ended, output).toBe(0);
    expect(image.run('/app/health.js', { TRIVEC_PORT: String(port) })).toBe(1);
  });
});
