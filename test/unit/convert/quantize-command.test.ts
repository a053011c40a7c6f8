/** Owns the rules of the command `models quantize`. */
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { showQuantizeReport } from '../../../src/cli/quantize.ts';
import type { QuantizeReport } from '../../../src/compare.ts';
import { withFolder } from './graphs.ts';

const timeoutMs = 120_000;
const entry = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/** The exit code and what was written. */
async function run(...flags: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [entry, 'models', 'quantize', ...flags]);
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

describe('models quantize', { timeout: timeoutMs }, () => {
  it('makes the int8 graph in the cache and reports likeness, size and speed', async () => {
    await withFolder(async (cacheDir) => {
      const { code, stdout } = await run('splade-tiny', '--cache-dir', cacheDir, '--json');
      const report = JSON.parse(stdout) as QuantizeReport;
      expect(code).toBe(0);
      expect(report.likeness).toMatchObject({ measure: 'cosine', head: 'sparse', texts: 24 });
      expect(report.likeness.worst).toBeGreaterThan(0.99);
      expect(report.likeness.mean).toBeGreaterThanOrEqual(report.likeness.worst);
      expect(report.likeness.mean).toBeLessThan(1);
      expect(report.speed).toBeGreaterThan(0);
      expect(await readdir(cacheDir)).toContain(report.path.slice(cacheDir.length + 1));
      expect(report.bytes.fp32).toBeGreaterThan(17e6);
    });
  });

  it('a model that is not there is named and ends with exit code 2', async () => {
    await withFolder(async (folder) => {
      const { code, stderr } = await run('absent', '--models-dir', folder, '--cache-dir', join(folder, 'cache'));
      expect(code).toBe(2);
      expect(stderr).toContain(join(folder, 'absent'));
    });
  });

  it('the report for a person has every number, with differences instead of cosines for a reranker', () => {
    const report: QuantizeReport = {
      path: '/cache/model.onnx',
      bytes: { fp32: 90_287_465, int8: 22_825_953 },
      likeness: { measure: 'cosine', head: 'dense', worst: 0.99049, mean: 0.99451, texts: 24 },
      speed: 2.951,
    };
    const text = showQuantizeReport(report);
    for (const part of ['/cache/model.onnx', '0.9905', '0.9945', '24 texts', '90.3 MB -> 22.8 MB', '2.95 times']) {
      expect(text).toContain(part);
    }
    const likeness = { measure: 'difference', head: 'logit', worst: 0.0321, mean: 0.0101, texts: 23 } as const;
    expect(showQuantizeReport({ ...report, likeness })).toContain('logits differ by at most 0.0321, mean 0.0101');
  });
});
