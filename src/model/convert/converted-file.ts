/** Owns a model's graph on its way into the cache: opened, converted, and what its file will hold. */
import { describeOpen } from './describe.ts';
import { encodeModel, encodeWithExternal, maxInlineBytes } from './encode-model.ts';
import { findExternalFiles } from './external-files.ts';
import { fileBytes } from './lazy-bytes.ts';
import type { LazyBytes } from './lazy-bytes.ts';
import { openModel } from './open-model.ts';
import { convert, recipeName } from './steps.ts';
import type { ConversionStep } from './steps.ts';
import type { GraphDescription } from '../../kernels/onnx/read.ts';
import { stat } from 'node:fs/promises';

/** A file that must lie beside the graph's. */
export type CompanionFile =
  { readonly name: string; readonly sourcePath: string } | { readonly name: string; readonly content: LazyBytes };

/** A converted model, not written yet. */
export interface ConvertedFile {
  /** What the graph says about itself now. */
  readonly graph: GraphDescription;
  /** Tells apart what different steps make of one model; empty where nothing was done. */
  readonly label: string;
  readonly graphFile: LazyBytes;
  readonly companions: readonly CompanionFile[];
}

/**
 * The model in a graph file after these steps; its weights are read when it is written.
 * `name` is that of these weights and no others; the names of companions begin with it.
 * @throws ConfigurationError where a file is missing or damaged, or a step cannot be done
 */
export async function convertFile(
  path: string,
  steps: readonly ConversionStep[],
  name: string,
  inlineLimitBytes = maxInlineBytes,
): Promise<ConvertedFile> {
  const open = openModel(path);
  const externalFiles = await findExternalFiles(open);
  convert(open, steps);
  const graph = describeOpen(open);
  const label = recipeName(steps);
  if (steps.length === 0 && externalFiles.length === 0) {
    return { graph, label, graphFile: fileBytes(path, 0, (await stat(path)).size), companions: [] };
  }
  if (steps.length === 0) {
    const names = new Map(
      externalFiles.map(({ location }, index) => [location, `${name}.${String(index)}.data`] as const),
    );
    const graphFile = encodeWithExternal(open, (location) => names.get(location) ?? location);
    const companions = externalFiles.map(({ location, path: sourcePath }) => ({
      name: names.get(location) ?? location,
      sourcePath,
    }));
    return { graph, label, graphFile, companions };
  }
  const dataFileName = `${name}-${label}.data`;
  const { graphFile, dataFile } = encodeModel(open, { dataFileName, maxInlineBytes: inlineLimitBytes });
  return { graph, label, graphFile, companions: dataFile === null ? [] : [{ name: dataFileName, content: dataFile }] };
}
