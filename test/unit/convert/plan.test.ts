/** Owns the rules of choosing a graph file and its conversions. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { DeviceAbilities, GraphVariant } from '../../../src/model/graph-variant.ts';
import { planPrecision } from '../../../src/model/convert/plan.ts';
import { precisionLabel, recipeName, splitAtQuantize } from '../../../src/model/convert/steps.ts';

const cpu: DeviceAbilities = { kind: 'cpu', hasFloat16: false, arch: 'x64' };
const cuda: DeviceAbilities = { kind: 'cuda', hasFloat16: true, arch: 'x64' };
const webgpu: DeviceAbilities = { kind: 'webgpu', hasFloat16: true, arch: 'x64' };
const plainWebgpu: DeviceAbilities = { ...webgpu, hasFloat16: false };

const precisions = ['int8', 'fp16', 'fp32'] as const;
const has = (...names: readonly (typeof precisions)[number][]): GraphVariant[] =>
  names.map((precision) => ({ path: `onnx/model_${precision}.onnx`, precision }));

/** A plan as one line. */
function show(
  available: readonly GraphVariant[],
  wanted: (typeof precisions)[number] | 'auto',
  device: DeviceAbilities,
): string {
  const plan = planPrecision(available, wanted, device);
  return 'problem' in plan
    ? plan.problem
    : [plan.variant.precision, ...plan.steps, precisionLabel(plan.precision, plan.steps)].join(' > ');
}

describe('planPrecision', () => {
  it('auto takes int8 on a CPU where the model ships it, else fp32, and makes neither int8 nor fp16 of itself', () => {
    expect(show(has('fp32', 'fp16', 'int8'), 'auto', cpu)).toBe('int8 > int8');
    expect(show(has('fp16', 'fp32'), 'auto', cpu)).toBe('fp32 > fp32');
    expect(show(has('fp16'), 'auto', cpu)).toBe('fp16 > widen > fp16->fp32');
  });

  it('auto takes fp16 on a device that computes in it, narrowed where the model has fp32 only', () => {
    expect(show(has('fp32', 'fp16', 'int8'), 'auto', cuda)).toBe('fp16 > fp16');
    expect(show(has('fp32', 'int8'), 'auto', cuda)).toBe('fp32 > narrow > fp32->fp16');
  });

  it('auto takes fp32 on a device without fp16, widened where the model has fp16 only', () => {
    expect(show(has('fp32', 'fp16'), 'auto', plainWebgpu)).toBe('fp32 > expandAttention > fp32');
    expect(show(has('fp16'), 'auto', plainWebgpu)).toBe('fp16 > widen > expandAttention > fp16->fp32');
  });

  it('a precision that is asked for is made of what there is', () => {
    expect(show(has('fp16', 'int8'), 'fp32', cpu)).toBe('fp16 > widen > fp16->fp32');
    expect(show(has('fp32'), 'int8', cpu)).toBe('fp32 > expandAttention > quantize > int8(quantized)');
    expect(show(has('fp16'), 'int8', cpu)).toBe('fp16 > widen > expandAttention > quantize > int8(quantized)');
    expect(show(has('fp32'), 'fp16', webgpu)).toBe('fp32 > narrow > expandAttention > fp32->fp16');
  });

  it('a file of the precision that is asked for is preferred, and served as it is', () => {
    for (const wanted of precisions) {
      expect(show(has('fp32', 'int8', 'fp16'), wanted, cpu)).toBe(`${wanted} > ${wanted}`);
    }
  });

  it('of several files of a precision the first is taken', () => {
    const other: GraphVariant = { path: 'onnx/model_quantized.onnx', precision: 'int8' };
    expect(planPrecision([other, ...has('int8')], 'int8', cpu)).toMatchObject({ variant: other });
  });

  it('a file that cannot be narrowed serves float32 on a GPU unless float16 is asked for', () => {
    const variants = has('fp32').map((variant) => ({ ...variant, isNarrowable: false }));
    expect(show(variants, 'auto', cuda)).toBe('fp32 > fp32');
    expect(show(variants, 'fp16', cuda)).toBe('fp32 > narrow > fp32->fp16');
  });

  it('float32 on a CPU takes the form that suits it where the file has another, and no other precision or device does', () => {
    const slow = has('fp16', 'fp32').map((variant) => ({ ...variant, isSlowOnCpu: true }));
    const [half = [], single = []] = slow.map((variant) => [variant]);
    expect(show(single, 'auto', cpu)).toBe('fp32 > fitCpu > fp32');
    expect(show(half, 'fp32', cpu)).toBe('fp16 > widen > fitCpu > fp16->fp32');
    expect(show(half, 'fp16', cpu)).toBe('fp16 > fp16');
    expect(show(single, 'int8', cpu)).toBe('fp32 > expandAttention > quantize > int8(quantized)');
    expect(show(single, 'fp32', cuda)).toBe('fp32 > fp32');
    expect(show(half, 'fp32', webgpu)).toBe('fp16 > widen > expandAttention > fp16->fp32');
  });

  it('what a device cannot run is refused with what to ask for instead', () => {
    expect(show(has('fp16', 'fp32'), 'fp16', plainWebgpu)).toBe('this webgpu device has no fp16: use fp32 or auto');
    expect(show(has('int8', 'fp32'), 'int8', cuda)).toContain('use fp16, fp32 or auto');
  });

  it('nothing to make it of is refused with what there is', () => {
    expect(show(has('int8'), 'fp32', cpu)).toBe(
      'has no fp32 or fp16 graph file to serve fp32 from on cpu (there is: onnx/model_int8.onnx)',
    );
    expect(show([], 'auto', cpu)).toContain('there is: none');
    expect(show([{ path: 'onnx/model_q4.onnx', precision: '4bit' }], 'auto', cpu)).toContain('onnx/model_q4.onnx');
  });

  it('what comes out is always what was asked for, from a file that is there', () => {
    const device = fc.constantFrom(cpu, cuda, webgpu, plainWebgpu);
    const wanted = fc.constantFrom(...precisions, 'auto' as const);
    fc.assert(
      fc.property(fc.uniqueArray(fc.constantFrom(...precisions)), wanted, device, (names, asked, where) => {
        const plan = planPrecision(has(...names), asked, where);
        if ('problem' in plan) return;
        expect(names).toContain(plan.variant.precision);
        if (asked !== 'auto') expect(plan.precision).toBe(asked);
        const isConverted = plan.steps.some((step) => step !== 'expandAttention');
        expect(isConverted).toBe(plan.precision !== plan.variant.precision);
        if (where.kind !== 'cpu') expect(plan.precision).not.toBe('int8');
        if (where === plainWebgpu) expect(plan.precision).toBe('fp32');
      }),
    );
  });
});

describe('names of conversions', () => {
  it('the name of a recipe has every step in order, with its version', () => {
    expect(recipeName(['widen', 'expandAttention', 'quantize'])).toMatch(/^widen\d+-expandAttention\d+-quantize\d+$/u);
    expect(recipeName([])).toBe('');
  });

  it('steps up to quantising make a file of their own', () => {
    expect(splitAtQuantize(['widen', 'quantize', 'expandAttention'])).toEqual({
      first: ['widen', 'quantize'],
      rest: ['expandAttention'],
    });
    expect(splitAtQuantize(['widen'])).toEqual({ first: [], rest: ['widen'] });
  });
});
