/** Owns the tiny repository that tests pull. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileOf, filesIn } from '../../support/fake-hub.ts';
import type { FakeFile } from '../../support/fake-hub.ts';
import { writeTinyModel } from '../../support/tiny-models.ts';

/** Name of the tiny repository. */
export const tinyId = 'tiny-org/tiny.model-1';

/** A repository as people publish them: what a server needs, and what it must not get. */
export async function tinyRepository(): Promise<Record<string, FakeFile>> {
  const folder = await mkdtemp(join(tmpdir(), 'trivec-tiny-'));
  try {
    await writeTinyModel('dense', folder);
    return {
      ...(await filesIn(folder)),
      '.gitattributes': fileOf('*.onnx lfs'),
      'README.md': fileOf('# tiny'),
      'model.safetensors': fileOf('x'.repeat(2048)),
      'pytorch_model.bin': fileOf('pickle'),
      '2_Normalize/pytorch_model.bin': fileOf('pickle'),
      'modeling_tiny.py': fileOf('import os'),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The graph file of the tiny repository. */
export const graphPath = 'onnx/model.onnx';
