/** What each part of src may import, beside itself and the floor; the direction of a request, read downwards. */
const protocol = 'executor/protocol.ts';
const mayImport = {
  'main.ts': ['cli', 'config'],
  cli: [
    'bulk',
    'client',
    'tensor',
    'server',
    'engine.ts',
    'bench',
    'compare.ts',
    'verify',
    'model',
    'cuda',
    'device/inventory',
    'device/choice.ts',
    'device/cpu.ts',
    'config',
  ],
  server: ['engine.ts', 'http', 'stdio', 'rpc', 'result-cache', 'schedule', 'device', 'config', 'cuda/wheels.ts'],
  engine: ['proof.ts', 'task', 'tokenize', 'model', 'device', 'config', 'cuda', protocol],
  // A client of servers, its own and others: it knows nothing of what is inside.
  bench: [],
  // A job, not a service: what gives it vectors is handed to it, or a server.
  bulk: ['client', 'tensor', 'rpc/json-writer.ts'],
  'compare.ts': ['verify', 'tokenize', 'model', protocol],
  // The plain forms of the kernels say what a head should give.
  verify: ['task', 'tokenize', 'model', 'kernels', 'device', 'tensor', protocol],
  'proof.ts': ['task', 'tokenize', 'model', 'device', 'tensor', protocol],
  // Routes of other services scale and compare vectors.
  http: ['rpc', 'tensor'],
  stdio: ['rpc'],
  // The wire names what lies below it: the report of devices, priorities, encodings, rows.
  rpc: [
    'task',
    'tensor',
    'device/pool.ts',
    'schedule/admission.ts',
    'schedule/item.ts',
    'schedule/scheduler.ts',
    protocol,
  ],
  task: ['tokenize', 'schedule', 'model', 'tensor', protocol],
  // A scheduler before the scheduler: it knows rows, and not what they are for.
  'result-cache': ['schedule', protocol],
  tokenize: [],
  schedule: ['device', 'tensor', protocol],
  // What a batch is made into is planned where batches are made up, and again where they run: by the same function.
  device: [protocol, 'executor/probe-protocol.ts', 'executor/plan.ts'],
  executor: ['tensor'],
  model: ['kernels', protocol],
  // The downloader was made for models and fetches anything.
  cuda: ['model/hub', 'model/json-file.ts'],
  kernels: [],
  tensor: [],
  // The settings know what a device may be called.
  config: ['device/wanted.ts'],
  telemetry: [],
  // Published by itself: what a browser loads of it may need nothing of the server, not even the floor.
  client: [],
  'errors.ts': [],
  'clock.ts': [],
};
const floor = ['errors.ts', 'clock.ts', 'telemetry'];
const isOfFloor = (part) => [...floor, 'tensor', 'client'].includes(part);

/** Packages that are known to one part only. */
const homes = {
  hono: '^src/http/',
  '@hono/node-server': '^src/http/',
  'onnxruntime-node': '^src/executor/',
  '@anush008/tokenizers': '^src/tokenize/',
  '@huggingface/tokenizers': '^src/tokenize/',
  // It maps the inference engine into its process.
  '@huggingface/transformers': '^src/verify/transformers-js-child\\.ts$',
  pino: '^src/telemetry',
  'prom-client': '^src/telemetry',
  // Loaded only where there is a collector to send spans to.
  '@opentelemetry/api': '^src/telemetry/otlp\\.ts$',
  '@opentelemetry/resources': '^src/telemetry/otlp\\.ts$',
  '@opentelemetry/sdk-trace-node': '^src/telemetry/otlp\\.ts$',
  '@opentelemetry/exporter-trace-otlp-http': '^src/telemetry/otlp\\.ts$',
  commander: '^src/(main\\.ts$|cli/)',
  'http-proxy-agent': '^src/model/hub/',
  'https-proxy-agent': '^src/model/hub/',
  listr2: '^src/cli/',
  'cli-progress': '^src/cli/bulk-progress\\.ts$',
  // Loaded only for files of their kind.
  hyparquet: '^src/bulk/(read|write)/parquet\\.ts$',
  'hyparquet-compressors': '^src/bulk/read/parquet\\.ts$',
  'hyparquet-writer': '^src/bulk/write/parquet\\.ts$',
  'apache-arrow': '^src/bulk/write/arrow\\.ts$',
  'csv-parse': '^src/bulk/read/csv\\.ts$',
};

const escape = (text) => text.replaceAll('.', '\\.');
/** `config` is `src/config.ts` or `src/config/`; a name with an extension is that one file. */
const pathOf = (part) => (part.endsWith('.ts') ? `^src/${escape(part)}$` : `^src/${part}(/|\\.ts$)`);

const directionRules = Object.entries(mayImport).map(([part, targets]) => ({
  name: `direction-${part.replace('.ts', '')}`,
  comment: `${part} may import only: ${[...targets, ...(isOfFloor(part) ? [] : floor)].join(', ') || 'nothing'}`,
  severity: 'error',
  from: { path: pathOf(part) },
  to: { path: '^src/', pathNot: [part, ...targets, ...(isOfFloor(part) ? [] : floor)].map(pathOf) },
}));

const homeRules = Object.entries(homes).map(([name, home]) => ({
  name: `home-${name.replace('@', '').replace('/', '-')}`,
  severity: 'error',
  from: { path: '^src/', pathNot: home },
  to: { path: `(^|/)node_modules/${name}/` },
}));

module.exports = {
  forbidden: [
    ...directionRules,
    ...homeRules,
    {
      name: 'known-part',
      comment: 'A new file or folder of src needs its line in this table.',
      severity: 'error',
      from: { path: '^src/', pathNot: Object.keys(mayImport).map(pathOf) },
      to: {},
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'src-stands-alone',
      comment: 'What is served imports neither tests, scripts nor development dependencies.',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^(test|scripts)/' },
    },
    {
      name: 'console-stands-alone',
      comment: 'The page is built for a browser from its own folder, and the server knows only what was built.',
      severity: 'error',
      from: { path: '^console/' },
      to: { pathNot: '^console/' },
    },
    {
      name: 'nobody-imports-console',
      severity: 'error',
      from: { path: '^(src|scripts)/' },
      to: { path: '^console/' },
    },
    {
      name: 'no-dev-dependency-in-src',
      severity: 'error',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|models)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      mainFields: ['module', 'main', 'types'],
    },
  },
};
