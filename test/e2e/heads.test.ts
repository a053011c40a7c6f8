import { afterAll, describe, expect, it } from 'vitest';
import { startServed, type Served } from '../support/served.ts';
import { goldenFolder } from '../unit/model/golden-models.ts';

const model = goldenFolder('bge-m3');
const started: Served[] = [];
afterAll(() => Promise.all(started.map((server) => server.end())));

async function counterOf(server: Served, name: string): Promise<number> {
  const text = await (await fetch(`${server.baseUrl}/metrics`)).text();
  return Number(new RegExp(`^${name}\\{[^}]*\\} (\\d+)$`, 'mu').exec(text)?.[1] ?? 0);
}

describe('a model with three heads', { timeout: 60_000 }, () => {
  it('answers the three methods of one array from one pass, with the values of each alone', async () => {
    const flags = ['--embed-model', model, '--sparse-model', model, '--multi-model', model];
    const server = await startServed({ flags });
    started.push(server);
    const inputs = ['heat moves through a plate'];
    const methods = ['embed', 'embed/sparse', 'embed/multi'];
    const alone: unknown[] = [];
    for (const method of methods) alone.push(await server.call(method, { inputs }));
    const [runs, texts] = [
      await counterOf(server, 'trivec_runs_total'),
      await counterOf(server, 'trivec_run_inputs_total'),
    ];
    const response = await fetch(`${server.baseUrl}/rcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(methods.map((method, id) => ({ jsonrpc: '2.0', id, method, params: { inputs } }))),
    });
    const answers = (await response.json()) as { id: number; result: Record<string, unknown> }[];
    for (const [id, expected] of alone.entries()) {
      const result = answers.find((answer) => answer.id === id)?.result;
      expect({ ...result, usage: null }).toEqual({ ...(expected as object), usage: null });
    }
    expect(await counterOf(server, 'trivec_runs_total')).toBe(runs + 1);
    expect(await counterOf(server, 'trivec_run_inputs_total')).toBe(texts + 3);
  });
});
