import { describe, expect, it } from 'vitest';
import type { Candidate, GpuCandidate } from '../../../../src/device/inventory/candidate.ts';
import { explainFailure } from '../../../../src/device/inventory/explain.ts';
import { cudaCandidate } from '../../../../src/device/inventory/nvidia.ts';
import { judgeProbe, readAnswer } from '../../../../src/device/inventory/verdict.ts';
import type { ProbeEnd } from '../../../../src/device/inventory/verdict.ts';

const gpu = { name: 'Tesla P4', uuid: null, busId: null, memoryBytes: null };
const cuda = cudaCandidate({ ...gpu, driverVersion: '550.54.15', computeCapability: '6.1' }, 0);
const webgpu: Candidate<'webgpu'> = {
  id: 'webgpu:0',
  provider: 'webgpu',
  index: 0,
  name: 'Vulkan adapter',
  details: { vendor: null, isSoftware: null, drivers: [], renderNodes: [], limits: null },
};
const missing = (library: string) =>
  `Failed to load library x.so with error: ${library}: cannot open shared object file: No such file or directory`;
const noAdapter = 'Failed to get a WebGPU adapter: No supported adapters';

describe('a failure', () => {
  it.each<[string, GpuCandidate, string, string]>([
    [
      'a missing CUDA library',
      cuda,
      missing('libcublasLt.so.13'),
      'libcublasLt.so.13 not found: run `trivec devices install-cuda`',
    ],
    [
      'a missing provider',
      cuda,
      missing('/a/b/libonnxruntime_providers_shared.so'),
      'libonnxruntime_providers_shared.so not found: run `trivec devices install-cuda`',
    ],
    [
      'a missing driver',
      cuda,
      missing('libcuda.so.1'),
      'libcuda.so.1 not found: install the NVIDIA driver, 580 or newer',
    ],
    [
      'any other missing library',
      webgpu,
      missing('libdrm.so.2'),
      'libdrm.so.2 not found: install the package that holds it',
    ],
    [
      'a broken CUDA library',
      cuda,
      'error: /c/libcublas.so.13: file too short',
      'libcublas.so.13 is broken: run `trivec devices install-cuda` again',
    ],
    [
      'a broken driver library',
      cuda,
      '/c/libcuda.so.1: invalid ELF header',
      'libcuda.so.1 is broken: reinstall the package',
    ],
    [
      'a provider of another version',
      cuda,
      "libonnxruntime.so.1: version `VERS_1.31.0' not found",
      'belongs to another version of the engine: run `trivec devices install-cuda` again',
    ],
    [
      'an old driver',
      cuda,
      'CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version',
      'the NVIDIA driver 550.54.15 is too old for CUDA 13: update to 580 or newer',
    ],
    [
      'an old GPU',
      cuda,
      'CUDA failure 209: no kernel image is available for execution on the device',
      'its compute capability 6.1 is too old: CUDA 13 needs 7.5 (Turing) or newer',
    ],
    [
      'a GPU that was left out',
      { ...cuda, details: { ...cuda.details, computeCapability: '10.0' } },
      'no kernel image is available',
      'holds no code for its compute capability 10.0: use --device webgpu',
    ],
    ['no GPU', cuda, 'CUDA failure 100: no CUDA-capable device is detected', '--gpus all'],
    ['a full GPU', cuda, 'CUDA failure 2: out of memory', 'its memory is taken: end the other processes'],
    ['a held GPU', cuda, 'CUDA-capable device(s) is/are busy or unavailable', 'another process holds it'],
    ['an old C library', cuda, "version `GLIBC_2.38' not found", 'no GLIBC_2.38: use a distribution with glibc 2.28'],
    ['musl', webgpu, 'Error loading shared library ld-linux-x86-64.so.2', 'musl'],
    ['no provider in the build', cuda, '[cuda] backend not found.', 'has no CUDA: use the CPU'],
    ['no WebGPU in the build', webgpu, 'WebGPU execution provider is not supported in this build.', 'has no WebGPU'],
    ['no adapter', webgpu, noAdapter, 'no Vulkan driver gives an adapter: install or update'],
    [
      'no Vulkan loader',
      webgpu,
      `Warning: Couldn't load Vulkan: libvulkan.so.1: cannot open shared object file\n${noAdapter}`,
      'libvulkan.so.1 not found: install the Vulkan loader',
    ],
    [
      'an old driver that lacks a function',
      cuda,
      'undefined symbol: cuTensorMapEncodeTiled',
      '550.54.15 is too old for CUDA 13',
    ],
    ['something new of an old driver', cuda, 'what?', '(what?): the NVIDIA driver 550.54.15 is too old for CUDA 13'],
    [
      'something new of an old GPU',
      { ...cuda, details: { ...cuda.details, driverVersion: '580.1' } },
      'what?',
      'its compute capability 6.1 is too old',
    ],
    ['a missing file of this program', webgpu, "Error: Cannot find module '/a/probe.js'", 'install or build it again'],
    ['something new', webgpu, '\n  first line  \nsecond', 'the engine refused it (first line): update its driver'],
  ])('by %s is said with its fix', (_, candidate, text, reason) => {
    expect(explainFailure(candidate, text, '')).toContain(reason);
  });

  it('is explained by the log where the message says less', () => {
    expect(explainFailure(cuda, 'Failed to load shared library', missing('libcurand.so.10'))).toContain(
      'libcurand.so.10',
    );
    expect(explainFailure(cuda, 'Failed to load shared library', '')).toContain('install-cuda');
  });

  it('is one line of bounded length', () => {
    const reason = explainFailure(webgpu, `${'x'.repeat(10_000)}\ny`, '');
    expect(reason.length).toBeLessThan(300);
    expect(reason).not.toContain('\n');
  });
});

const measured = {
  type: 'probed',
  relativeError: 1e-6,
  rows: 1024,
  runMs: 1,
  cpuRunMs: 20,
  hasFp16: true,
  libraries: ['/lib/libcuda.so.1'],
};

describe('the end of a probe', () => {
  it.each<[string, ProbeEnd, string, string]>([
    [
      'by a signal',
      { kind: 'exited', code: null, signal: 'SIGSEGV' },
      '',
      'its probe was ended by SIGSEGV: the NVIDIA driver 550.54.15 is too old',
    ],
    [
      'by an exit code',
      { kind: 'exited', code: 3, signal: null },
      '',
      'its probe ended with exit code 3: the NVIDIA driver 550.54.15 is too old',
    ],
    [
      'by a signal after a known complaint',
      { kind: 'exited', code: null, signal: 'SIGABRT' },
      missing('libcublas.so.13'),
      'was ended by SIGABRT: libcublas.so.13 not found: run `trivec devices install-cuda`',
    ],
    ['by its bound', { kind: 'timedOut', timeoutMs: 9000 }, '', 'hung for 9000 ms and was killed: update its driver'],
    ['before its start', { kind: 'notStarted', reason: 'EAGAIN' }, '', 'could not be started (EAGAIN)'],
    ['with garbage', { kind: 'answered', message: { type: 'probed' } }, '', 'makes no sense'],
    [
      'with wrong values',
      { kind: 'answered', message: { ...measured, relativeError: 0.5 } },
      '',
      'not those of the CPU',
    ],
  ])('%s makes the device unusable, with the reason', (_, end, log, reason) => {
    expect(judgeProbe(cuda, end, log).verdict).toEqual({ isUsable: false, reason: expect.stringContaining(reason) });
  });

  it('with good values makes it usable', () => {
    const { rows, runMs, cpuRunMs, libraries } = measured;
    expect(judgeProbe(cuda, { kind: 'answered', message: measured }, '').verdict).toEqual({
      isUsable: true,
      hasFp16: true,
      isSoftware: false,
      timing: { rows, runMs, cpuRunMs },
      libraries,
    });
  });

  it('names the adapter that was used', () => {
    const log = 'Using "llvmpipe (LLVM 19)" with driver: "libvulkan_lvp.so"';
    expect(judgeProbe(webgpu, { kind: 'answered', message: measured }, log)).toMatchObject({
      candidate: { name: 'llvmpipe (LLVM 19)', details: { vendor: 'Mesa', isSoftware: true } },
      verdict: { isUsable: true, isSoftware: true },
    });
  });

  it.each([
    null,
    'probed',
    [],
    {},
    { type: 'failed' },
    { ...measured, runMs: NaN },
    { ...measured, cpuRunMs: '1' },
    { ...measured, hasFp16: 1 },
    { ...measured, libraries: 'x' },
    { ...measured, relativeError: -1 },
  ])('is garbage where the answer is %j', (message) => {
    expect(readAnswer(message)).toBeNull();
  });
});
