import { describe, expect, it } from 'vitest';
import { failureCauseOf, messageOf } from '../../../src/executor/engine-failure.ts';

const causeOf = (message: string) => failureCauseOf(new Error(message));
const inNode = (message: string) =>
  `Non-zero status code returned while running MatMul node. Name:'' Status Message: ${message}`;
const cuda = (code: number, text: string) =>
  `CUDA failure ${code}: ${text} ; GPU=0 ; hostname=h ; file=/onnxruntime/cuda_call.cc ; line=137 ; expr=cudaMalloc(&p, size);`;

describe('an error of the engine', () => {
  it.each([
    ['CPU without arena', inNode('std::bad_alloc')],
    [
      'CPU with arena',
      inNode(
        '/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 14400000000\n',
      ),
    ],
    ['CUDA', inNode(cuda(2, 'out of memory'))],
    ['CUDA without a text', inNode(cuda(2, ''))],
    ['cuBLAS', inNode('CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=h')],
    [
      'WebGPU, buffer',
      'WebGPU validation failed. [Invalid Buffer (unlabeled)] is invalid due to a previous error.\n - While validating entries[2]',
    ],
    [
      'WebGPU, size',
      'WebGPU validation failed. Buffer size (6400000000) exceeds the max buffer size limit (1073741824).\n - While calling [Device].CreateBuffer([BufferDescriptor]).',
    ],
    ['WebGPU, bindings', inNode('Too many storage buffers in shader. Current: 16, Max is 12')],
    ['Vulkan', 'vkAllocateMemory failed with VK_ERROR_OUT_OF_DEVICE_MEMORY'],
    ['the copy of an output', 'Array buffer allocation failed'],
  ])('of %s tells that memory did not suffice', (_name, message) => {
    expect(causeOf(message)).toBe('outOfMemory');
  });

  it.each([
    ['an illegal address', inNode(cuda(700, 'an illegal memory access was encountered'))],
    ['a launch failure', inNode(cuda(719, 'unspecified launch failure'))],
    ['an uncorrectable memory error', inNode(cuda(214, 'uncorrectable ECC error encountered'))],
    ['a short form', 'CUDA error 700'],
    ['a device that is gone', inNode(cuda(100, 'no CUDA-capable device is detected'))],
    ['WebGPU', 'WebGPU device lost (1): The device was lost because of an internal error'],
    ['Dawn', 'WebGPU validation failed. [Device] is lost.\n - While calling [Device].CreateBuffer'],
    ['Vulkan', 'vkQueueSubmit failed with VK_ERROR_DEVICE_LOST'],
  ])('by %s tells that the device is lost', (_name, message) => {
    expect(causeOf(message)).toBe('deviceLost');
  });

  it.each([
    [
      'a shape',
      inNode('/encoder/Add: left operand cannot broadcast on dim 1 LeftShape: {1,65,8}, RightShape: {1,64,8}'),
    ],
    ['an invalid argument of CUDA', inNode(cuda(1, 'invalid argument'))],
    ['a code that only starts like another', inNode(cuda(7000, 'unknown'))],
    ['a check before the run', 'item 3: 700 tokens, allowed are 1 to 512'],
    ['a shader', 'WebGPU validation failed. Error while parsing WGSL: unexpected token'],
    ['nothing', ''],
  ])('about %s tells nothing of the executor', (_name, message) => {
    expect(causeOf(message)).toBe('failed');
    expect(failureCauseOf(message)).toBe('failed');
  });

  it('is told in one line of bounded length', () => {
    expect(messageOf(new Error('first\nsecond'))).toBe('first');
    expect(messageOf(new Error('x'.repeat(9_000)))).toHaveLength(500);
    expect(messageOf('no error')).toBe('unknown error');
  });
});
