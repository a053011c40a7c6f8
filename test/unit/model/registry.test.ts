/** Owns the rules of how settings become served models. */
import { cp, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { localModelProblems, resolveModels } from '../../../src/model/registry.ts';
import { writeTinyModel } from '../../support/tiny-models.ts';
import { problemsOf, settings, shippedModels, withFolder } from './model-folders.ts';

describe('resolveModels', () => {
  it('one folder used twice is one model with the heads of both uses', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('dense', join(folder, 'tiny'));
      const served = await resolveModels(
        settings(folder, { embedModel: ['tiny'], multiModel: [join(folder, 'tiny')] }),
      );
      expect(served.all).toHaveLength(1);
      expect(served.embed[0]).toBe(served.multiVector[0]);
      expect(served.embed[0]?.heads).toEqual(['dense', 'rows', 'maxSim']);
      expect(served.sparseEmbed).toEqual([]);
      expect(served.rerank).toEqual([]);
    });
  });

  it('one folder named twice for one use is one model of it', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('dense', join(folder, 'tiny'));
      const served = await resolveModels(settings(folder, { embedModel: ['tiny', join(folder, 'tiny')] }));
      expect(served.embed.map(({ modelId }) => modelId)).toEqual(['tiny']);
      expect(served.all).toHaveLength(1);
    });
  });

  it('two names of one folder are one model', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('dense', join(folder, 'tiny'));
      await symlink(join(folder, 'tiny'), join(folder, 'alias'));
      const served = await resolveModels(settings(folder, { embedModel: ['alias', 'tiny'], multiModel: ['tiny'] }));
      expect(served.all.map(({ modelId }) => modelId)).toEqual(['tiny']);
      expect(served.embed).toEqual(served.all);
    });
  });

  it('several models of one use keep the order of the setting', async () => {
    await withFolder(async (folder) => {
      for (const name of ['first', 'second', 'third']) await writeTinyModel('dense', join(folder, name));
      const names = { embedModel: ['third', 'first'], multiModel: ['second', 'third'] };
      const served = await resolveModels(settings(folder, names));
      expect(served.embed.map(({ modelId }) => modelId)).toEqual(['third', 'first']);
      expect(served.multiVector.map(({ modelId }) => modelId)).toEqual(['second', 'third']);
      expect(served.all.map(({ modelId, heads }) => [modelId, heads])).toEqual([
        ['third', ['dense', 'rows', 'maxSim']],
        ['first', ['dense']],
        ['second', ['rows', 'maxSim']],
      ]);
    });
  });

  it('a folder in the layout of the hub is known by its repository, not by its commit', async () => {
    await withFolder(async (folder) => {
      const snapshot = join(folder, 'models--tiny-org--tiny/snapshots', '0'.repeat(40));
      await writeTinyModel('dense', snapshot);
      const served = await resolveModels(settings(folder, { embedModel: [snapshot] }));
      expect(served.all.map(({ modelId }) => modelId)).toEqual(['tiny-org/tiny']);
    });
  });

  it('everything off is no model', async () => {
    expect(await resolveModels(settings(shippedModels, {}))).toEqual({
      embed: [],
      sparseEmbed: [],
      multiVector: [],
      rerank: [],
      all: [],
    });
  });

  it('the shipped folders serve all but the cross-encoder, and nothing in them can be changed', async () => {
    const names = {
      embedModel: ['all-MiniLM-L6-v2'],
      multiModel: ['all-MiniLM-L6-v2'],
      sparseModel: ['splade-tiny'],
    };
    const served = await resolveModels(settings(shippedModels, names));
    expect(served.all.map(({ modelId }) => modelId)).toEqual(['all-MiniLM-L6-v2', 'splade-tiny']);
    expect(Object.isFrozen(served)).toBe(true);
    expect(Object.isFrozen(served.embed[0]?.prompts)).toBe(true);
    expect(Object.isFrozen(served.embed[0]?.selfChecks[0]?.expected.values)).toBe(true);
  });

  it('the problems of all models come in one error', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('fiveLabels', join(folder, 'five'));
      await writeTinyModel('crossEncoder', join(folder, 'cross'));
      const wrong = { embedModel: ['cross'], sparseModel: ['missing'], rerankModel: ['five'] };
      const problems = await problemsOf(resolveModels(settings(folder, wrong)));
      expect(problems.some((problem) => problem.startsWith('sparse-model: there is no model folder'))).toBe(true);
      expect(problems.some((problem) => problem.startsWith('embed-model: cross is a sequence classifier'))).toBe(true);
      expect(problems.some((problem) => problem.startsWith('rerank-model: five has 5 labels'))).toBe(true);
    });
  });

  it('two folders of one name are refused', async () => {
    await withFolder(async (folder) => {
      await writeTinyModel('dense', join(folder, 'a/tiny'));
      await mkdir(join(folder, 'b'));
      await cp(join(folder, 'a/tiny'), join(folder, 'b/tiny'), { recursive: true });
      const both = { embedModel: ['a/tiny', 'b/tiny'] };
      const problems = await problemsOf(resolveModels(settings(folder, both)));
      expect(problems).toEqual([expect.stringContaining('have the same name')]);
    });
  });
});

describe('the problems of named models', () => {
  const named = {
    modelsDir: shippedModels,
    embedModel: ['nope'],
    sparseModel: ['splade-tiny'],
    multiModel: ['org/model'],
    rerankModel: [],
    precision: 'auto' as const,
  };

  it('are told without a start, those of the hub left out', async () => {
    expect(await localModelProblems(named)).toEqual([expect.stringContaining('embed-model')]);
    expect(await localModelProblems({ ...named, embedModel: ['all-MiniLM-L6-v2'] })).toEqual([]);
  });
});
