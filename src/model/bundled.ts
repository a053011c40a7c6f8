/** Owns where the models lie that come with the package. */
import { fileURLToPath } from 'node:url';

/** Directory with one folder per bundled model. */
export const bundledModelsDir = fileURLToPath(new URL('../../models', import.meta.url));
