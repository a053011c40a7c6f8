import { describe, expect, it } from 'vitest';
import { openClient, type Client } from '../../../src/client/client.ts';
import type { ClientOptions } from '../../../src/client/options.ts';
import type { StdioTarget } from '../../../src/client/stdio-options.ts';
import { createStdioTransport } from '../../../src/client/stdio.ts';
import { rejectionOf } from './fake-server.ts';

/** A server in a process: `answer(frame, say)` is the body of a function that answers what is no handshake. */
const serverOf = (answer: string, before = '') => `
  ${before}
  const say = (id, members) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...members }) + '\\n');
  const capabilities = { embed: { dimension: 1 } };
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === 'initialize') say(id, { result: { protocolVersion: 1, server: { name: 'x', version: String(process.pid) }, capabilities } });
    else { ${answer} }
  });`;
const ending = `if (method === 'shutdown') { say(id, { result: {} }); process.exit(0); }`;

async function connectTo(target: StdioTarget, options: ClientOptions = {}, endTimeoutMs = 5000): Promise<Client> {
  const { maxAnswerBytes = 1000 } = options;
  return openClient(createStdioTransport(target, { maxAnswerBytes, endTimeoutMs }), options);
}
const node = (script: string): StdioTarget => ({ command: process.execPath, args: ['-e', script] });

describe('a server in a process of its own', () => {
  it('that answers one call with too much goes on, and answers the others', async () => {
    const script = serverOf(
      `${ending}
      if (method !== 'embed') return;
      const isBig = params.inputs[0] === 'big';
      if (isBig) say(id, { result: { vectors: [[1]], pad: 'x'.repeat(1e6) } });
      else waiting = id;
      if (isBig) say(waiting, { result: { vectors: [[2]] } });`,
      'let waiting;',
    );
    const client = await connectTo(node(script));
    const small = client.embed(['small']);
    const big = rejectionOf(client.embed(['big']));
    expect((await small).usage.retries).toBe(0);
    expect(await big).toMatchObject({ errorName: 'tooLarge', data: { limit: 1000 } });
    await client.close();
  });

  it('that refuses a frame without an id is heard at once', async () => {
    const script = serverOf(`${ending}
      if (method === 'embed') say(null, { error: { code: -32013, message: 'frame too large' } });`);
    const client = await connectTo(node(script));
    expect(await rejectionOf(client.embed(['a']))).toMatchObject({ code: -32013, message: 'frame too large' });
    await client.close();
  });

  it('that could not be started says why', async () => {
    const error = await rejectionOf(connectTo({ command: '/nowhere/trivec' }));
    expect(error).toMatchObject({ errorName: 'unavailable', retryable: false });
    expect(error.message).toContain('ENOENT');
  });

  it.skipIf(process.platform === 'win32')(
    'is left after its time, where what it started holds its output',
    async () => {
      // It hears neither `shutdown` nor the signal that ends the shell.
      const stubborn = serverOf(
        '',
        "process.on('SIGTERM', () => undefined); setTimeout(() => process.exit(), 60_000);",
      );
      const env = { PATH: process.env['PATH'] ?? '', STUBBORN: stubborn };
      const target = { command: 'sh', args: ['-c', `"${process.execPath}" -e "$STUBBORN"; true`], env };
      const client = await connectTo(target, {}, 100);
      const processId = Number(client.info.server.version);
      await client.close();
      // Signal 0 only asks; it throws where nobody is there.
      expect(process.kill(processId, 0)).toBe(true);
      process.kill(processId, 'SIGKILL');
    },
  );
});
