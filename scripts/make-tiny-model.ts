/** Owns the command that writes a tiny model to a folder: `tsx scripts/make-tiny-model.ts <kind> <folder>`. */
import { tinyKinds, writeTinyModel } from '../test/support/tiny-models.ts';
import type { TinyKindName } from '../test/support/tiny-models.ts';

const [kind, folder] = process.argv.slice(2);
const kinds = Object.keys(tinyKinds) as TinyKindName[];
const chosen = kinds.find((name) => name === kind);
if (chosen === undefined || folder === undefined) {
  process.stderr.write(`usage: make-tiny-model <${kinds.join('|')}> <folder>\n`);
  process.exitCode = 2;
} else {
  await writeTinyModel(chosen, folder);
  process.stderr.write(`wrote ${chosen} to ${folder}\n`);
}
