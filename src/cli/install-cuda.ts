/** Owns the command `devices install-cuda`. */
import { resolve } from 'node:path';
import { Option } from 'commander';
import type { Command } from 'commander';
import { environment } from '../config/environment.ts';
import { settingsOf, type Flags } from './command-settings.ts';
import { readPythonIndex } from '../config/python-index.ts';
import { ConfigurationError } from '../errors.ts';
import { cudaLibraryEnvironment, setFolderOf } from '../cuda/library-environment.ts';
import { cudaWheels } from '../cuda/wheels.ts';
import type { WheelSource } from '../cuda/wheel-source.ts';
import { lineProgress } from '../model/hub/progress.ts';
import type { PullProgress } from '../model/hub/progress.ts';
import { collectingProgress } from './garbage.ts';
import { withBars } from './pull-bars.ts';

/** What the files of the wheels run on. */
const supportedPlatform = 'linux x64';

/** Where the files come from, decided before anything is opened. */
type Origin = { readonly kind: 'folder'; readonly folder: string } | { readonly kind: 'index' };

/**
 * Where the files may come from.
 * @throws ConfigurationError where the network is forbidden and no folder is given
 */
function originOf(from: unknown, isOffline: boolean): Origin {
  if (typeof from === 'string') return { kind: 'folder', folder: from };
  if (!isOffline) return { kind: 'index' };
  throw new ConfigurationError([
    'the libraries of CUDA are not installed, and --offline forbids fetching them: leave it out, or give --from a folder ' +
      'that holds ' +
      cudaWheels.map(({ file }) => file).join(', '),
  ]);
}

async function install(cacheDir: string, origin: Origin, progress: PullProgress): Promise<string> {
  // Loaded here, since it brings the downloader with it.
  const { downloadFolderOf, freeBytesOf, installCuda } = await import('../cuda/install.ts');
  const { folderSource, indexSource } = await import('../cuda/wheel-source.ts');
  const { systemPacing: pacing } = await import('../model/hub/retry.ts');
  const source: WheelSource =
    origin.kind === 'folder'
      ? folderSource(origin.folder)
      : indexSource(readPythonIndex(environment), downloadFolderOf(cacheDir), pacing, progress);
  try {
    return await installCuda({ cacheDir, wheels: cudaWheels, source, pacing, progress, freeBytes: freeBytesOf });
  } finally {
    source.close();
  }
}

async function run(_flags: unknown, command: Command): Promise<void> {
  // A flag that `devices` has as well is read by `devices`.
  const flags = command.optsWithGlobals<Flags>();
  const { from } = flags;
  const settings = settingsOf(flags, ['offline', 'cacheDir']);
  const cacheDir = resolve(settings.cacheDir);
  const platform = `${process.platform} ${process.arch}`;
  if (platform !== supportedPlatform) {
    throw new ConfigurationError([
      `the libraries of CUDA are there for ${supportedPlatform} only, and this is ${platform}`,
    ]);
  }
  const present = cudaLibraryEnvironment(cacheDir);
  // The image brings a set of its own, which is no cache: it is neither proved nor mended here.
  const isOwn = present?.folder === setFolderOf(cacheDir, cudaWheels);
  const hasNoOrigin = settings.offline && from === undefined;
  if (present !== null && (hasNoOrigin || !isOwn)) {
    process.stdout.write(`${present.folder}\n`);
    return;
  }
  const origin = originOf(from, settings.offline);
  const work = (progress: PullProgress) => install(cacheDir, origin, collectingProgress(progress));
  const lines = lineProgress((line) => process.stderr.write(`${line}\n`));
  const folder = await (process.stdout.isTTY ? withBars('installing the libraries of CUDA', work) : work(lines));
  process.stdout.write(`${folder}\n`);
}

/** Adds `install-cuda` to the command `devices`. */
export function addInstallCudaCommand(devices: Command): void {
  devices
    .command('install-cuda')
    .description('bring what serving on an NVIDIA GPU needs besides the driver into the cache, and print the folder')
    .option('--from <folder>', 'take the wheels from this folder instead of a Python package index')
    .option('--cache-dir <text>', 'directory for what is derived from models, and for the libraries of CUDA')
    .addOption(new Option('--offline [true|false]', 'open no connection').preset('true'))
    .option('--config <file>', 'JSON file with settings, as for serve')
    .action(run);
}
