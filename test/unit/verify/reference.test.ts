/** Owns the rules of the talk with the process that runs transformers.js. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ReferenceFailure, withReference } from '../../../src/verify/reference.ts';
import { isAlive, until } from '../../support/executors.ts';
import { withFolder } from '../convert/graphs.ts';

const model = { folder: '/models/one', graphPath: '/models/one/onnx/model.onnx', modelClass: 'AutoModel' } as const;
const sample = { text: 'a text', pair: null, hasSpecialTokens: true };

/** Runs `work` with a process that does what `source` says to each message. */
async function withScript<Result>(source: string, work: (entry: string) => Promise<Result>): Promise<Result> {
  return withFolder(async (folder) => {
    const entry = join(folder, 'child.mjs');
    await writeFile(entry, `process.on('message', (request) => { ${source} });`);
    return work(entry);
  });
}

describe('the process that runs transformers.js', () => {
  it('a process that ends in the middle of a question is a failure that says so', async () => {
    const opening = withScript('process.exit(3)', (entry) =>
      withReference(entry, model, () => Promise.resolve('done')),
    );
    await expect(opening).rejects.toThrow(ReferenceFailure);
    await expect(opening).rejects.toThrow('exit code 3');
  });

  it('a process that ended between two questions fails the next one', async () => {
    const source = `process.send({ type: 'opened', version: String(process.pid) }, () => process.exit(0))`;
    const asking = withScript(source, (entry) =>
      withReference(entry, model, async (reference) => {
        await until('its end', () => !isAlive(Number(reference.version)), 10_000);
        return reference.encode(sample);
      }),
    );
    await expect(asking).rejects.toThrow(ReferenceFailure);
  });

  it('its reasons are told on one line, and never at any length', async () => {
    const source = `process.send({ type: 'failed', reason: 'no such\\n  model ' + 'x'.repeat(10_000) })`;
    const opening = withScript(source, (entry) => withReference(entry, model, () => Promise.resolve('done')));
    const error = await opening.catch((reason: unknown) => reason);
    expect(String(error)).toContain('no such model x');
    expect(String(error).length).toBeLessThan(400);
  });

  it('is gone once the work is done, or has failed', async () => {
    const source = `process.send({ type: 'opened', version: String(process.pid) })`;
    let pid = 0;
    const failing = withScript(source, (entry) =>
      withReference(entry, model, (reference) => {
        pid = Number(reference.version);
        return Promise.reject(new Error('the work failed'));
      }),
    );
    await expect(failing).rejects.toThrow('the work failed');
    expect(pid).toBeGreaterThan(0);
    await until('its end', () => !isAlive(pid), 10_000);
  });

  it('sees none of the keys and tokens of this process', async () => {
    process.env['HF_TOKEN'] = 'secret';
    const source = `process.send({ type: 'opened', version: JSON.stringify(Object.keys(process.env)) })`;
    try {
      const names = await withScript(source, (entry) =>
        withReference(entry, model, ({ version }) => Promise.resolve(version)),
      );
      expect(names).toContain('ORT_DISABLE_TELEMETRY');
      expect(names).not.toContain('HF_TOKEN');
    } finally {
      delete process.env['HF_TOKEN'];
    }
  });
});
