/** Owns where the models lie that come with the package. */
import { fileURLToPath } from 'node:url';

/** Directory with one folder per bundled model. */
export const bundledModelsDir = fileURLToPath(new URL('../../models', import.meta.url));

/** Where the bare name of a model is looked for. */
export const modelsDirOf = ({ modelsDir }: { readonly modelsDir: string | null }): string =>
  modelsDir ?? bundledModelsDir;
