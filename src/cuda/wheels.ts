/** Owns what makes CUDA run: which files of which wheels, each pinned by size and sha256. */
import { createHash } from 'node:crypto';

/** A file that is taken out of a wheel. */
export interface WheelEntry {
  /** Path inside the wheel. */
  readonly path: string;
  /** Name beside the others. */
  readonly name: string;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/** A wheel of the Python package index. */
export interface Wheel {
  /** Name of the project, in the form that addresses use. */
  readonly project: string;
  readonly version: string;
  readonly file: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly entries: readonly WheelEntry[];
}

/**
 * Version of onnxruntime-node that the provider belongs to: the two share structures that differ between versions.
 */
export const engineVersion = '1.30.0';

/**
 * The CUDA execution provider, the engine of the same build, and the CUDA 13 libraries that they need besides the
 * driver's `libcuda.so.1`. `libonnxruntime_providers_cuda.so` is linked against cublas, cublasLt, curand and cudart;
 * cublasLt opens nvrtc while it runs, and its wheel says that it needs it. cuDNN is opened for convolutions only, and
 * no text encoder has one.
 */
export const cudaWheels: readonly Wheel[] = [
  {
    project: 'onnxruntime-gpu',
    version: engineVersion,
    file: 'onnxruntime_gpu-1.30.0-cp311-cp311-manylinux_2_28_x86_64.whl',
    sizeBytes: 246_658_419,
    sha256: '4fbf0c5d7b5fb99266c2e8a802e3e64af68bdc383e0f3c7349b985f1087eedaa',
    entries: [
      {
        path: 'onnxruntime/capi/libonnxruntime.so.1.30.0',
        name: 'libonnxruntime.so.1',
        sizeBytes: 29_062_976,
        sha256: '5a140dc17c8b60b35b2ceab0bb533e65ac54f06a208948417c1f9c31df6afc4c',
      },
      {
        path: 'onnxruntime/capi/libonnxruntime_providers_cuda.so',
        name: 'libonnxruntime_providers_cuda.so',
        sizeBytes: 272_049_904,
        sha256: '9d7587acb137b31bf84e4d32dc444b969bb601d098b01395effcacfe4341e364',
      },
      {
        path: 'onnxruntime/capi/libonnxruntime_providers_shared.so',
        name: 'libonnxruntime_providers_shared.so',
        sizeBytes: 14_632,
        sha256: '086ec1d5388f64153d9c63470d126693db9a182c8ce236d3a1119068471b8a0d',
      },
      {
        path: 'onnxruntime/LICENSE',
        name: 'LICENSE.onnxruntime',
        sizeBytes: 1073,
        sha256: '2f07c72751aed99790b8a4869cf2311df85a860b22ded05fa22803587a48922c',
      },
      {
        path: 'onnxruntime/ThirdPartyNotices.txt',
        name: 'ThirdPartyNotices.onnxruntime.txt',
        sizeBytes: 338_088,
        sha256: '143764b952fdb1a7c69ce653bfba74a7744d6a8a573bfb73e235fba356c83de3',
      },
    ],
  },
  {
    project: 'nvidia-cublas',
    version: '13.10.0.20',
    file: 'nvidia_cublas-13.10.0.20-py3-none-manylinux1_x86_64.manylinux_2_5_x86_64.whl',
    sizeBytes: 444_289_903,
    sha256: 'dcc6d63884c53d07e267ce7e6feac17b2538cebaafec5db865736c3e28e4dc84',
    entries: [
      {
        path: 'nvidia/cu13/lib/libcublas.so.13',
        name: 'libcublas.so.13',
        sizeBytes: 57_282_152,
        sha256: '863f349b5352363c66079090d43d9d56ad3d676373ecac18418fd4fb2d0579d1',
      },
      {
        path: 'nvidia/cu13/lib/libcublasLt.so.13',
        name: 'libcublasLt.so.13',
        sizeBytes: 551_653_208,
        sha256: 'b58e18ab4a6adc9bf4833d5cfe28db688e675fd6021db7eaf5da78d23f95d2de',
      },
      {
        // The same text is in each of NVIDIA's wheels.
        path: 'nvidia_cublas-13.10.0.20.dist-info/licenses/License.txt',
        name: 'LICENSE.nvidia.txt',
        sizeBytes: 59_262,
        sha256: 'ad6f5853fba0ca0d159d0f58d49ae49830c2f8c93f7a92648b9ce90adb4c6ccd',
      },
    ],
  },
  {
    project: 'nvidia-cuda-nvrtc',
    version: '13.5.37',
    file: 'nvidia_cuda_nvrtc-13.5.37-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl',
    sizeBytes: 58_185_930,
    sha256: '86b4d68058807988b7d9af5b44917a0601e9c337f35ccd657bfb3c759ff8d8bc',
    entries: [
      {
        path: 'nvidia/cu13/lib/libnvrtc.so.13',
        name: 'libnvrtc.so.13',
        sizeBytes: 141_163_664,
        sha256: '98a317ff5d2176dee5a04235c6663f8d553d5ed95b3104cbf7fb198cbf76a10d',
      },
      {
        path: 'nvidia/cu13/lib/libnvrtc-builtins.so.13.5',
        name: 'libnvrtc-builtins.so.13.5',
        sizeBytes: 7_268_296,
        sha256: '6cecb2fd3e562bab1cb1c6e192f8f828157683c8febb22a00e178f9faf4e7f6a',
      },
    ],
  },
  {
    project: 'nvidia-cuda-runtime',
    version: '13.5.37',
    file: 'nvidia_cuda_runtime-13.5.37-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl',
    sizeBytes: 2_504_024,
    sha256: 'df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d',
    entries: [
      {
        path: 'nvidia/cu13/lib/libcudart.so.13',
        name: 'libcudart.so.13',
        sizeBytes: 806_720,
        sha256: 'be114eaabb3f3251cf30b6e334be5e8c3cf1b12c0a11c17295a810dd83cc141a',
      },
    ],
  },
  {
    project: 'nvidia-curand',
    version: '10.4.5.25',
    file: 'nvidia_curand-10.4.5.25-py3-none-manylinux_2_27_x86_64.whl',
    sizeBytes: 77_113_015,
    sha256: '22bb226a857e5888fe6b54ae465fc4371296bcff13a35f79e19691bcf454f529',
    entries: [
      {
        path: 'nvidia/cu13/lib/libcurand.so.10',
        name: 'libcurand.so.10',
        sizeBytes: 104_860_296,
        sha256: '82586610865e67dc73505087e04dd40a3cc69b281028731ce763faafe14b1347',
      },
    ],
  },
];

/** Digits of a hash that tell one set from another. */
const setNameDigits = 16;

/** Name of a set's folder: another one for other files, so that an upgrade never mixes two sets. */
export function setNameOf(wheels: readonly Wheel[]): string {
  const files = wheels.flatMap(({ entries }) => entries.map(({ name, sha256 }) => `${sha256} ${name}\n`));
  return createHash('sha256').update(files.sort().join('')).digest('hex').slice(0, setNameDigits);
}
