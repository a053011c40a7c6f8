/** Owns the graph files that a model may have: their names and their precisions. */
import type { Precision } from './manifest.ts';

/** Where a graph will run. */
export interface DeviceAbilities {
  readonly kind: 'cpu' | 'cuda' | 'webgpu';
  /** Whether float16 arithmetic works there. */
  readonly hasFloat16: boolean;
  /** Architecture of the processor, as Node names it. */
  readonly arch: string;
}

/** A graph file that a model has, or may have. */
export interface GraphVariant {
  /** Path inside the model's folder. */
  readonly path: string;
  /** `4bit` files are known but never chosen by themselves: they are slower than float32 on a CPU. */
  readonly precision: Precision | '4bit';
  /** False where it cannot be made float16; absent: it can. */
  readonly isNarrowable?: boolean;
  /** True where it has fused operators that a CPU computes faster in parts; absent: none is known of. */
  readonly isSlowOnCpu?: boolean;
}

/** Files of the usual exporters, of each precision the preferred one first; `arm64` only for that architecture. */
const knownFiles: readonly (GraphVariant & { readonly arch?: string })[] = [
  { path: 'onnx/model_int8.onnx', precision: 'int8' },
  { path: 'onnx/model_quantized.onnx', precision: 'int8' },
  { path: 'onnx/model_uint8.onnx', precision: 'int8' },
  { path: 'onnx/model_qint8_arm64.onnx', precision: 'int8', arch: 'arm64' },
  { path: 'onnx/model_qint8_avx512_vnni.onnx', precision: 'int8', arch: 'x64' },
  { path: 'onnx/model_qint8_avx512.onnx', precision: 'int8', arch: 'x64' },
  { path: 'onnx/model_quint8_avx2.onnx', precision: 'int8', arch: 'x64' },
  { path: 'model_quantized.onnx', precision: 'int8' },
  { path: 'model_int8.onnx', precision: 'int8' },
  { path: 'onnx/model.onnx', precision: 'fp32' },
  { path: 'model.onnx', precision: 'fp32' },
  { path: 'onnx/model_fp16.onnx', precision: 'fp16' },
  { path: 'model_fp16.onnx', precision: 'fp16' },
  { path: 'onnx/model_q4.onnx', precision: '4bit' },
  { path: 'onnx/model_q4f16.onnx', precision: '4bit' },
  { path: 'onnx/model_bnb4.onnx', precision: '4bit' },
];

/** The device that is assumed where nobody says another. */
export const thisCpu: DeviceAbilities = { kind: 'cpu', hasFloat16: false, arch: process.arch };

/** The files that a model may have, `ownPath` (float32) before all others of its precision. */
export function possibleVariants(ownPath: string | null, arch: string): GraphVariant[] {
  const own: GraphVariant[] = ownPath === null ? [] : [{ path: ownPath, precision: 'fp32' }];
  const fitting = knownFiles.filter((file) => file.arch === undefined || file.arch === arch);
  return [...own, ...fitting.map(({ path, precision }) => ({ path, precision }))];
}
