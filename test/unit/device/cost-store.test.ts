import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openCostStore } from '../../../src/device/cost-store.ts';
import type { CostKey } from '../../../src/device/cost-store.ts';

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});
function newFolder(): string {
  const root = mkdtempSync(join(tmpdir(), 'trivec-costs-'));
  roots.push(root);
  return join(root, 'costs');
}

const key: CostKey = {
  modelId: 'm',
  graphPath: '/cache/m-1.onnx',
  precision: 'int8',
  head: 'dense',
  deviceId: 'cpu:0',
  deviceName: 'A CPU',
  provider: 'cpu',
  threads: 1,
};
const cost = { fixedMs: 0.5, tokenMs: 0.125, squaredTokenMs: 0.0001 };
const neverUnwritable = (reason: string) => {
  throw new Error(reason);
};
const open = (folder: string, version = '1') => openCostStore(folder, { version, onUnwritable: neverUnwritable });
const onlyFile = (folder: string) => {
  const [name, ...others] = readdirSync(folder);
  if (name === undefined || others.length > 0) throw new Error('there is not exactly one file');
  return join(folder, name);
};

describe('a store of costs', () => {
  it('gives what was put last, at once and after it was opened again, and leaves no other file', () => {
    const folder = newFolder();
    const store = open(folder);
    expect(store.get(key)).toBeNull();
    store.put(key, { ...cost, fixedMs: 9 });
    store.put(key, cost);
    expect(store.get(key)).toEqual(cost);
    expect(open(folder).get({ ...key })).toEqual(cost);
    expect(readdirSync(folder)).toHaveLength(1);
  });

  it('keeps apart whatever a cost depends on', () => {
    const folder = newFolder();
    open(folder).put(key, cost);
    const others: CostKey[] = [
      { ...key, modelId: 'n' },
      { ...key, graphPath: '/cache/m-2.onnx' },
      { ...key, precision: 'fp32' },
      { ...key, head: 'rows' },
      { ...key, deviceId: 'cpu:1' },
      { ...key, deviceName: 'Another CPU' },
      { ...key, provider: 'webgpu' },
      { ...key, threads: 2 },
    ];
    for (const other of others) expect(open(folder).get(other)).toBeNull();
    expect(open(folder, '2').get(key)).toBeNull();
    expect(open(folder).get(key)).toEqual(cost);
  });

  const rewrites: readonly (readonly [string, (content: string) => string])[] = [
    ['is empty', () => ''],
    ['is cut off', (content) => content.slice(0, -9)],
    ['is null', () => 'null'],
    ['is a list', () => '[]'],
    ['has no cost', (content) => content.replace('"cost"', '"price"')],
    ['has a negative cost', (content) => content.replace('0.125', '-0.125')],
    ['has a cost that is no number', (content) => content.replace('0.125', '"0.125"')],
    ['has an endless cost', (content) => content.replace('0.125', '1e999')],
    ['is of another key', (content) => content.replace('A CPU', 'B CPU')],
    ['is of another version', (content) => content.replace('"version":"1"', '"version":"2"')],
  ];
  it.each(rewrites)('knows nothing from a file that %s, and writes it anew', (_name, rewrite) => {
    const folder = newFolder();
    open(folder).put(key, cost);
    const path = onlyFile(folder);
    const content = readFileSync(path, 'utf8');
    expect(rewrite(content)).not.toBe(content);
    writeFileSync(path, rewrite(content));
    const store = open(folder);
    expect(store.get(key)).toBeNull();
    store.put(key, cost);
    expect(open(folder).get(key)).toEqual(cost);
  });

  it('works in memory where the folder cannot be made, and says so once', () => {
    const folder = newFolder();
    // A file where the folder should be: no permission helps, not even root's.
    writeFileSync(folder, '');
    const reasons: string[] = [];
    const store = openCostStore(folder, { version: '1', onUnwritable: (reason) => reasons.push(reason) });
    expect(store.get(key)).toBeNull();
    store.put(key, cost);
    store.put({ ...key, head: 'rows' }, cost);
    expect(store.get(key)).toEqual(cost);
    expect(store.get({ ...key, head: 'rows' })).toEqual(cost);
    expect(reasons).toEqual([expect.stringContaining(folder)]);
  });

  it('cleans up after a file that could not be given its name', () => {
    const folder = newFolder();
    open(folder).put(key, cost);
    const path = onlyFile(folder);
    rmSync(path);
    mkdirSync(join(path, 'full'), { recursive: true });
    const reasons: string[] = [];
    const store = openCostStore(folder, { version: '1', onUnwritable: (reason) => reasons.push(reason) });
    store.put(key, cost);
    expect(store.get(key)).toEqual(cost);
    expect(reasons).toHaveLength(1);
    expect(readdirSync(folder)).toHaveLength(1);
  });
});

describe('the files of a store', () => {
  const fill = (folder: string, version: string, count: number) => {
    const store = open(folder, version);
    for (let threads = 1; threads <= count; threads += 1) store.put({ ...key, threads }, cost);
  };

  it('of other versions stay while there are few', () => {
    const folder = newFolder();
    fill(folder, '1', 100);
    fill(folder, '2', 100);
    open(folder, '3');
    expect(readdirSync(folder)).toHaveLength(200);
  });

  it('of other versions go once there are more than 256, and nothing that is not the store’s', () => {
    const folder = newFolder();
    fill(folder, '1', 200);
    fill(folder, '2', 57);
    writeFileSync(join(folder, 'notes.json'), '{}');
    const store = open(folder, '2');
    expect(readdirSync(folder)).toHaveLength(58);
    expect(store.get({ ...key, threads: 57 })).toEqual(cost);
    expect(readdirSync(folder)).toContain('notes.json');
  });

  it('of the same version are the newest 256 after an opening', () => {
    const folder = newFolder();
    open(folder).put({ ...key, threads: 999 }, cost);
    utimesSync(onlyFile(folder), 0, 0);
    fill(folder, '1', 256);
    const store = open(folder);
    expect(readdirSync(folder)).toHaveLength(256);
    expect(store.get({ ...key, threads: 999 })).toBeNull();
    expect(store.get({ ...key, threads: 1 })).toEqual(cost);
  });
});
