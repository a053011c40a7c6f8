/** Owns the rules of the command `models verify`, with real models in real processes. */
import { execFile } from 'node:child_process';
import { cp, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { showVerifyReport } from '../../../src/cli/verify.ts';
import type { VerifyReport } from '../../../src/verify/verify-model.ts';
import { withFolder } from '../convert/graphs.ts';
import { goldenFolder } from '../model/golden-models.ts';

const timeoutMs = 120_000;
const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/** The exit code and what was written. */
async function run(...flags: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [entry, 'models', 'verify', ...flags]);
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

async function verify(...flags: readonly string[]): Promise<{ code: number; report: VerifyReport }> {
  const { code, stdout } = await run(...flags, '--json');
  return { code, report: JSON.parse(stdout) as VerifyReport };
}

const verdictsOf = ({ heads }: VerifyReport) => Object.fromEntries(heads.map(({ head, verdict }) => [head, verdict]));

/** The bytes of an ONNX file with a description that makes them `size` long: what is cached is known by its size. */
function paddedModel(bytes: Uint8Array, size: number): Buffer {
  const text = Buffer.alloc(size - bytes.length - 3, ' ');
  return Buffer.concat([bytes, Buffer.of(0x32, (text.length & 0x7f) | 0x80, text.length >> 7), text]);
}

describe('models verify', { timeout: timeoutMs }, () => {
  it.each([
    ['bert-prompts-excluded', { dense: 'agrees', rows: 'agrees' }],
    ['decoder-dense', { dense: 'agrees', rows: 'agrees' }],
    ['colbert-pylate', { rows: 'agrees' }],
    ['bert-splade-log1p', { sparse: 'agrees' }],
    ['bge-m3', { dense: 'agrees', sparse: 'agrees', rows: 'agrees' }],
    ['cross-encoder-1', { logit: 'agrees' }],
  ])('%s gives what transformers.js gives, with the same ids for every text', async (name, verdicts) => {
    await withFolder(async (cacheDir) => {
      const { code, report } = await verify(goldenFolder(name), '--cache-dir', cacheDir);
      expect(verdictsOf(report)).toEqual(verdicts);
      expect(code).toBe(0);
      for (const { texts, sameIds } of report.heads) {
        expect(texts).toBeGreaterThan(0);
        expect(sameIds).toBe(texts);
      }
    });
  });

  it('a generative reranker is compared on the whole filled template', async () => {
    await withFolder(async (folder) => {
      const yesNo = {
        yes: 'yes',
        no: 'no',
        prefix: '<|im_start|>user\n',
        body: '{instruction}: {query} {document}',
        suffix: '<|im_end|>\n',
        instruction: 'Judge',
      };
      const name = 'generative-reranker';
      await cp(goldenFolder(name), join(folder, name), { recursive: true });
      await writeFile(join(folder, 'catalog.json'), JSON.stringify({ [name]: { yesNo } }));
      const { code, report } = await verify(join(folder, name), '--cache-dir', join(folder, 'cache'));
      expect(verdictsOf(report)).toEqual({ logit: 'agrees' });
      expect(report.heads[0]?.sameIds).toBe(report.heads[0]?.texts);
      expect(code).toBe(0);
    });
  });

  it('a model served by other heads than its files say is found out, with exit code 1', async () => {
    await withFolder(async (cacheDir) => {
      const [served, meant] = ['bert-pool-cls', 'bert-pool-max'];
      for (const name of [served, meant]) await verify(goldenFolder(name), '--cache-dir', cacheDir);
      const files = await readdir(cacheDir);
      const pathOf = (name: string): string => join(cacheDir, files.find((file) => file.startsWith(name)) ?? '');
      const { size } = await stat(pathOf(meant));
      await writeFile(pathOf(meant), paddedModel(await readFile(pathOf(served)), size));
      const { code, stdout } = await run(goldenFolder(meant), '--cache-dir', cacheDir);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^dense .* DIFFERS$/mu);
      expect(stdout).toMatch(/^rows .* agrees$/mu);
      expect(stdout).toContain('dense differs: a text has a cosine of');
    });
  });

  it('a graph that transformers.js cannot run is not compared, says why, and ends with exit code 1', async () => {
    await withFolder(async (cacheDir) => {
      const { code, stdout } = await run(goldenFolder('xlmr-dense-positions'), '--cache-dir', cacheDir);
      expect(code).toBe(1);
      expect(stdout).toMatch(/dense cannot be compared, because transformers\.js .*position_ids/u);
    });
  });

  it('weights that trivec quantised are compared with the file that they come from', async () => {
    await withFolder(async (cacheDir) => {
      const flags = ['--precision', 'int8', '--cache-dir', cacheDir];
      const { code, report } = await verify(goldenFolder('bert-dense'), ...flags);
      expect(report.precision).toBe('int8(quantized)');
      expect(report.heads[0]?.likeness?.worst).toBeLessThan(0.999999);
      expect(code).toBe(0);
    });
  });

  it('a model that trivec itself refuses ends with exit code 2 and the reason', async () => {
    await withFolder(async (cacheDir) => {
      const { code, stderr } = await run(goldenFolder('bert-mystery'), '--cache-dir', cacheDir);
      expect(code).toBe(2);
      expect(stderr).toContain('Mystery');
    });
  });

  it('the report for a person tells how many texts have other ids, and whose fault that may be', () => {
    const likeness = { measure: 'difference', head: 'logit', worst: 0.0021, mean: 0.001, texts: 5 } as const;
    const text = showVerifyReport({
      modelId: 'org/model',
      precision: 'fp16->fp32',
      graphPath: '/models/one/onnx/model_fp16.onnx',
      transformersJs: '4.3.2',
      heads: [
        {
          head: 'logit',
          verdict: 'agrees',
          reason: null,
          texts: 7,
          sameIds: 5,
          likeness,
          tolerance: { minCosine: 0.9995, maxDifference: 0.03 },
          terms: null,
        },
      ],
    });
    for (const part of ['org/model', 'model_fp16.onnx, served as fp16->fp32', '5 of 7', '0.002100', 'at most 0.03']) {
      expect(text).toContain(part);
    }
    expect(text).toContain('logit: transformers.js has other token ids for 2 of 7 texts, which may be its own fault');
  });
});
