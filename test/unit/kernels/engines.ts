/** Owns on what the kernels are checked: the CPU in every operator set, WebGPU where its kernels change. */
import { it } from 'vitest';
import { softwareAdapter, webgpuRequirement, webgpuTolerance } from '../../support/webgpu.ts';
import type { Engine } from './run-onnx.ts';

const opsets = Array.from({ length: 11 }, (_, index) => 11 + index);

/** The oldest, and the one since which the axes of every reduction are inputs. */
const webgpuOpsets = [11, 18];

/** SwiftShader compiles shaders on the cores that everything else runs on. @unit ms */
const webgpuTimeoutMs = 120_000;

const webgpu = webgpuRequirement();
// The loader reads it when the first session is created.
if (!webgpu.skip) Object.assign(process.env, softwareAdapter);

/** One test for each engine and operator set that the rule holds for. */
export function itInEveryOpset(rule: string, check: (opset: number, engine: Engine) => Promise<void>): void {
  it.each(opsets)(`${rule} in operator set %i`, (opset) => check(opset, 'cpu'));
  it.skipIf(webgpu.skip).each(webgpuOpsets)(
    webgpu.title(`${rule} on WebGPU in operator set %i`),
    (opset) => check(opset, 'webgpu'),
    webgpuTimeoutMs,
  );
}

/** How far a value may be from the reference. */
export const toleranceOn = (engine: Engine, tolerance: number): number =>
  engine === 'cpu' ? tolerance : Math.max(tolerance, webgpuTolerance);
