import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build.ts'],
    // Files run in processes of their own: native addons do not share a process well. Two cores, two files at a time.
    pool: 'forks',
    maxWorkers: 2,
    // Far above what any test needs; a server that loads models on a busy machine takes seconds.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: process.env['CI'] ? ['default', ['json', { outputFile: '.cache/vitest.json' }]] : ['default'],
  },
});
