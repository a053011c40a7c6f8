import { describe, expect, it } from 'vitest';
import { factsOfAdapter, factsOfLibraries } from '../../../../src/device/inventory/adapter.ts';
import { listWebgpu } from '../../../../src/device/inventory/list-webgpu.ts';
import { driverEnvironment } from '../../../../src/device/inventory/machine.ts';
import { vulkanDrivers } from '../../../../src/device/inventory/vulkan.ts';
import { fakeMachine } from '../../../support/fake-machine.ts';

const manifest = (library: string) => JSON.stringify({ file_format_version: '1.0.0', ICD: { library_path: library } });
const files = {
  '/usr/share/vulkan/icd.d/lvp_icd.json': manifest('libvulkan_lvp.so'),
  '/etc/vulkan/icd.d/nvidia_icd.json': manifest('libGLX_nvidia.so.0'),
  '/opt/swift/icd.json': manifest('./libvk_swiftshader.so'),
  '/opt/swift/libvk_swiftshader.so': '',
  '/opt/broken.json': '{',
  '/opt/gone.json': manifest('/opt/gone.so'),
};
const librariesWith = (variables: Record<string, string>) =>
  vulkanDrivers(fakeMachine(files, { variables })).drivers.map(({ library }) => library);

describe('Vulkan drivers', () => {
  it.each([
    ['are searched for in the directories of the system', {}, ['libGLX_nvidia.so.0', 'libvulkan_lvp.so']],
    [
      'are those that a variable names',
      { VK_ICD_FILENAMES: '/opt/swift/icd.json' },
      ['/opt/swift/libvk_swiftshader.so'],
    ],
    [
      'are those of the newer variable where both are set',
      { VK_DRIVER_FILES: '/etc/vulkan/icd.d', VK_ICD_FILENAMES: '/opt/swift/icd.json' },
      ['libGLX_nvidia.so.0'],
    ],
    [
      'may be added to',
      { VK_ADD_DRIVER_FILES: '/opt/swift/icd.json' },
      ['/opt/swift/libvk_swiftshader.so', 'libGLX_nvidia.so.0', 'libvulkan_lvp.so'],
    ],
    ['are searched for where XDG says', { XDG_DATA_DIRS: '/nowhere' }, ['libGLX_nvidia.so.0']],
    [
      'are not those whose manifest or library is missing',
      { VK_DRIVER_FILES: '/opt/broken.json:/opt/gone.json:/no.json' },
      [],
    ],
  ])('%s', (_, variables, libraries) => {
    expect(librariesWith(variables)).toEqual(libraries);
  });
});

describe('a list of WebGPU adapters', () => {
  it.each([
    ['is empty without a driver', fakeMachine({}), 'no Vulkan driver is installed'],
    [
      'is empty where a variable leads nowhere',
      fakeMachine(files, { variables: { VK_ICD_FILENAMES: '/no.json' } }),
      'VK_ICD_FILENAMES names no driver manifest that can be read',
    ],
    ['is empty on ARM', fakeMachine(files, { architecture: 'arm64' }), 'no WebGPU for linux on arm64'],
  ])('%s, with the reason', (_, machine, reason) => {
    const list = listWebgpu(machine);
    expect('absence' in list && list.absence.reason).toContain(reason);
  });

  it('knows software by its driver, and what it cannot know as null', () => {
    const only = fakeMachine(files, { variables: { VK_ICD_FILENAMES: '/opt/swift/icd.json' } });
    expect(listWebgpu(only)).toMatchObject({
      candidates: [{ id: 'webgpu:0', name: 'SwiftShader', details: { isSoftware: true, limits: null } }],
    });
    expect(listWebgpu(fakeMachine({ ...files, '/dev/dri/renderD128': '' }))).toMatchObject({
      candidates: [
        { name: 'Vulkan adapter', details: { isSoftware: null, vendor: null, renderNodes: ['renderD128'] } },
      ],
    });
    expect(listWebgpu(fakeMachine({}, { platform: 'darwin', architecture: 'arm64' }))).toMatchObject({
      candidates: [{ name: 'Metal adapter', details: { isSoftware: null } }],
    });
  });
});

describe('an adapter', () => {
  const listed = 'INFO | DRIVER:               [0] llvmpipe (LLVM 15.0.6, 256 bits)\n';
  it.each([
    [
      'by the device that the loader opened',
      `${listed}DRIVER:                  Using "NVIDIA H200" with driver: "libGLX_nvidia.so.0"\n`,
      ['libvulkan_lvp.so', 'libGLX_nvidia.so.0'],
      { name: 'NVIDIA H200', vendor: 'NVIDIA', isSoftware: false },
    ],
    [
      'by the one device that there is',
      listed,
      ['libvulkan_intel.so', 'libvulkan_lvp.so'],
      { name: 'llvmpipe (LLVM 15.0.6, 256 bits)', vendor: 'Mesa', isSoftware: true },
    ],
    [
      'as software by its driver, whatever it is called',
      'Using "Fast Thing" with driver: "/usr/lib/libvk_swiftshader.so"',
      [],
      { name: 'Fast Thing', vendor: 'Google', isSoftware: true },
    ],
    [
      'by no more than the drivers where the loader names none',
      '',
      ['/usr/lib/libvulkan_radeon.so'],
      { name: 'AMD GPU', vendor: 'AMD', isSoftware: false },
    ],
    [
      'not at all where drivers differ and the log says nothing',
      `${listed}INFO | DRIVER:               [1] AMD Radeon RX 7900\n`,
      ['libvulkan_radeon.so', 'libvulkan_lvp.so'],
      { name: null, vendor: null, isSoftware: null },
    ],
    ['not at all by an unknown driver', '', ['libmystery.so'], { name: null, vendor: null, isSoftware: null }],
  ])('is known %s', (_, log, libraries, facts) => {
    expect(factsOfAdapter(log, libraries)).toEqual(facts);
  });

  it('is not known where there are no drivers', () => {
    expect(factsOfLibraries([])).toEqual({ name: null, vendor: null, isSoftware: null });
  });
});

describe('the environment of a probe', () => {
  it('holds what drivers read, and no key or token', () => {
    const variables = { VK_ICD_FILENAMES: 'a', HOME: '/h', LD_LIBRARY_PATH: 'l', CUDA_VISIBLE_DEVICES: '1' };
    const secrets = {
      TRIVEC_API_KEY: 'k',
      HF_TOKEN: 't',
      NODE_OPTIONS: '-r x',
      LD_PRELOAD: 'p',
      VK_LOADER_DEBUG: 'all',
    };
    expect(driverEnvironment(fakeMachine({}, { variables: { ...variables, ...secrets } }))).toEqual({
      ...variables,
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
      ORT_DISABLE_TELEMETRY: '1',
    });
  });
});
