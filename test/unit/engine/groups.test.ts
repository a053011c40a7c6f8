import { describe, expect, it } from 'vitest';
import type { FoundDevice } from '../../../src/device/inventory/find.ts';
import { abilitiesOf } from '../../../src/engine/group.ts';
import { groupUses, settingsFor } from '../../../src/engine/groups.ts';
import { refuseWishes, usesOf, wishesOf } from '../../../src/engine/wishes.ts';
import { ConfigurationError } from '../../../src/errors.ts';
import { readSettings } from '../../../src/config/load.ts';

const device = (id: string, hasFp16 = false) => {
  const [provider, index] = id.split(':');
  return {
    candidate: { id, provider, index: Number(index) },
    verdict: { isUsable: true, hasFp16 },
    environment: {},
  } as unknown as FoundDevice;
};
const cpu = [device('cpu:0', true)];
const gpus = [device('cuda:0', true), device('cuda:1', true)];
const settingsOf = (flags: Record<string, unknown>) =>
  readSettings({ flags, environment: {}, configFile: null, unknownArguments: [] }).settings;

describe('the models of a process', () => {
  it('are grouped by the devices that their uses were given, in the order of the uses', () => {
    const devices = { embed: gpus, sparseEmbed: cpu, multiVector: gpus, rerank: [device('cuda:1', true)] };
    const groups = groupUses(['embed', 'sparseEmbed', 'multiVector', 'rerank'], devices);
    expect(groups.map(({ uses }) => uses)).toEqual([['embed', 'multiVector'], ['sparseEmbed'], ['rerank']]);
    expect(groups[0]?.devices).toBe(gpus);
  });

  it('are opened for their own group only', () => {
    const settings = {
      modelsDir: '/',
      embedModel: ['e'],
      sparseModel: ['s'],
      multiModel: ['m'],
      rerankModel: ['r'],
      precision: 'auto' as const,
    };
    expect(settingsFor(settings, ['sparseEmbed', 'rerank'])).toEqual({ ...settings, embedModel: [], multiModel: [] });
  });
});

describe('the precisions that a group is tried in', () => {
  const group = (devices: FoundDevice[]) => ({ devices, uses: ['embed'] as const });

  it('are half and then single, where every device has half and nobody asked for one', () => {
    expect(abilitiesOf(group(gpus), 'auto').map(({ kind, hasFloat16 }) => [kind, hasFloat16])).toEqual([
      ['cuda', true],
      ['cuda', false],
    ]);
  });

  it.each([
    ['one device lacks it', [device('cuda:0', true), device('cuda:1')], 'auto'],
    ['it is the CPU', cpu, 'auto'],
  ] as const)('are single alone, where %s', (_, devices, precision) => {
    expect(abilitiesOf(group([...devices]), precision).map(({ hasFloat16 }) => hasFloat16)).toEqual([false]);
  });

  it('are one where it was asked for', () => {
    expect(abilitiesOf(group(gpus), 'fp32')).toHaveLength(1);
  });
});

describe('the wishes of the uses', () => {
  it('are their own, else the one for all', () => {
    const settings = settingsOf({ device: 'cuda', rerankDevice: 'cpu' });
    const { embed, rerank } = wishesOf(settings);
    expect([embed, rerank]).toEqual([['cuda'], ['cpu']]);
  });

  it('count only where there is a model', () => {
    expect(usesOf(settingsOf({ sparseModel: 'none' }))).toEqual(['embed', 'multiVector']);
  });

  it('that cannot be had are told by the setting that names them, the same one of several uses once', () => {
    const refuse = (...problems: ['embed' | 'rerank', string][]): unknown => {
      try {
        refuseWishes(problems.map(([wish, problem]) => ({ wish, problem })));
        return null;
      } catch (error) {
        return error instanceof ConfigurationError ? error.problems : error;
      }
    };
    expect(refuse()).toBeNull();
    expect(refuse(['rerank', 'no'])).toEqual(['rerank-device: no']);
    expect(refuse(['embed', 'no'], ['rerank', 'no'])).toEqual(['device: no']);
    expect(refuse(['embed', 'no'], ['rerank', 'never'])).toEqual(['embed-device: no', 'rerank-device: never']);
  });
});
