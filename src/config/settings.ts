/** Owns the settings: type, bounds, default, unit and purpose of each, once. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { environment } from './environment.ts';
import { isHubOffline } from './hub.ts';
import {
  count,
  devices,
  fileMode,
  keys,
  flag,
  hostPattern,
  list,
  models,
  originPattern,
  socketPath,
  text,
} from './values.ts';

/** Everything about one setting that is not its value. */
export interface SettingMeta {
  /** One sentence: what it does and when to change it. */
  readonly description: string;
  /** Text of the default where the default itself depends on the machine. */
  readonly defaultText?: string;
  readonly isSecret?: boolean;
}

const meta = new Map<string, SettingMeta>();
/** Attaches its meta to a setting; the key is repeated so that help can be built from the schema alone. */
function setting<T extends z.ZodType>(key: string, schema: T, about: SettingMeta): T {
  meta.set(key, about);
  return schema;
}

const mebibyte = 1_048_576;
const defaultCacheDir = () => join(environment['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'trivec');

/** The settings schema; flags, environment variables, the file and the README all follow from it. */
export const settingsSchema = z.strictObject({
  host: setting('host', text().default('127.0.0.1'), {
    description: 'Address to listen on; 0.0.0.0 to be reachable from other machines, then with a key.',
  }),
  port: setting('port', count(0, 65_535).default(8000), { description: 'Port to listen on; 0 takes a free one.' }),
  stdio: setting('stdio', flag().default(false), {
    description: 'Speak RCP on stdin and stdout instead of HTTP, one JSON text a line.',
  }),
  socket: setting('socket', socketPath().nullable().default(null), {
    description: 'Path of a Unix socket to listen on instead of host and port; removed at the end.',
  }),
  socketMode: setting('socketMode', fileMode().default('600'), {
    description: 'Who may connect to the Unix socket, as an octal file mode.',
  }),
  tlsCert: setting('tlsCert', text().nullable().default(null), {
    description: 'PEM file with the certificate and its chain: HTTPS instead of HTTP; read again when it changes.',
  }),
  tlsKey: setting('tlsKey', text().nullable().default(null), {
    description: 'PEM file with the private key of the certificate, without a passphrase.',
  }),
  apiKey: setting('apiKey', keys().nullable().default(null), {
    description:
      'Keys, separated by commas; callers must send one as `Authorization: Bearer`; none means that nobody is refused.',
    isSecret: true,
  }),
  apiKeyFile: setting('apiKeyFile', text().nullable().default(null), {
    description:
      'File with further keys, one `[name:]key [requestsPerSecond=N] [requestBurst=N] [queuedTokens=N]` a line; read ' +
      'again when it changes.',
  }),
  keyRequestsPerSecond: setting('keyRequestsPerSecond', count(0, 1_000_000).default(0), {
    description: 'Calls that one key may make in a second, each call of an array counted; 0 is no limit.',
  }),
  keyRequestBurst: setting('keyRequestBurst', count(0, 1_000_000).default(0), {
    description: 'Calls that a key which was silent may make at once; 0 is those of one second.',
  }),
  keyQueuedTokens: setting('keyQueuedTokens', count(0, 1_000_000_000).default(0), {
    description: 'Tokens of one key that may wait for a device or run on it at a time; 0 is no limit.',
  }),
  corsOrigins: setting('corsOrigins', list(originPattern, 'an origin such as https://app.example').default([]), {
    description: 'Origins of web pages that may call the server, separated by commas.',
  }),
  allowedHosts: setting(
    'allowedHosts',
    list(hostPattern, 'a host name without scheme and port').nullable().default(null),
    {
      description: 'Names accepted in the Host header; unset, loopback names where the bind is loopback, else any.',
    },
  ),
  httpSession: setting('httpSession', z.enum(['stateless', 'single']).default('stateless'), {
    description: 'single gives all HTTP callers one session with the rules of stdio; for the conformance suite.',
  }),
  metricsOpen: setting('metricsOpen', flag().default(false), {
    description: 'Answer /metrics without the key.',
  }),
  console: setting('console', flag().default(true), {
    description:
      'Serve the console, a page that shows and tries what the server can do, at /; --no-console turns it off.',
  }),
  compatModels: setting('compatModels', z.enum(['any', 'served']).default('any'), {
    description:
      'Names of models that clients of other services may send: any, which gives the first model of the task where the ' +
      'name is none of a served one, or served, which refuses such a name.',
  }),
  openaiTokenIds: setting('openaiTokenIds', z.enum(['refuse', 'model']).default('refuse'), {
    description:
      'What becomes of token ids in `/v1/embeddings`: refuse, because clients send those of another tokenizer, or model, ' +
      "which takes them as the model's own.",
  }),
  embedModel: setting('embedModel', models().default(['all-MiniLM-L6-v2']), {
    description:
      'Models that serve `embed`, the first one where a caller names none: folders, names of folders in the models ' +
      'directory, or org/name[@revision] on the Hugging Face hub; repeat the flag, or separate by commas; none turns ' +
      'it off.',
  }),
  sparseModel: setting('sparseModel', models().default(['splade-tiny']), {
    description: 'The same for `embed/sparse`.',
  }),
  multiModel: setting('multiModel', models().default(['all-MiniLM-L6-v2']), {
    description: 'The same for `embed/multi` and for `rerank` with the method colbert.',
  }),
  rerankModel: setting('rerankModel', models().default([]), {
    description: 'Cross-encoders and generative rerankers for `rerank`; where one is set it is the default.',
  }),
  precision: setting('precision', z.enum(['auto', 'int8', 'fp16', 'fp32']).default('auto'), {
    description:
      'Weights to serve; auto takes int8 on a CPU where the model has it. Others are converted from what the model has.',
  }),
  modelsDir: setting('modelsDir', text().nullable().default(null), {
    description: 'Directory with one folder per model.',
    defaultText: "the package's `models`",
  }),
  cacheDir: setting('cacheDir', text().prefault(defaultCacheDir), {
    description: 'Directory for what is derived from models; must be writable unless it was prepared before.',
    defaultText: '`~/.cache/trivec`',
  }),
  offline: setting(
    'offline',
    flag().prefault(() => isHubOffline(environment)),
    {
      description: 'Never get a model from the hub; one that is in its cache is used.',
      defaultText: '`HF_HUB_OFFLINE`, else false',
    },
  ),
  device: setting('device', devices().default(['auto']), {
    description:
      'Where models run: auto, cpu, webgpu, cuda, or devices such as cuda:0,cuda:1; auto takes CUDA, else WebGPU, ' +
      'where it is faster than the CPU. `trivec devices` lists what there is.',
  }),
  embedDevice: setting('embedDevice', devices().nullable().default(null), {
    description: 'The same for the models of `--embed-model`; unset, as `--device`.',
  }),
  sparseDevice: setting('sparseDevice', devices().nullable().default(null), {
    description: 'The same for the models of `--sparse-model`; unset, as `--device`.',
  }),
  multiDevice: setting('multiDevice', devices().nullable().default(null), {
    description: 'The same for the models of `--multi-model`; unset, as `--device`.',
  }),
  rerankDevice: setting('rerankDevice', devices().nullable().default(null), {
    description: 'The same for the models of `--rerank-model`; unset, as `--device`.',
  }),
  executors: setting('executors', count(0, 256).default(0), {
    description:
      'Executor processes on the CPU; 0 is one of one thread for each core the process may use, fewer ones share the cores.',
  }),
  gpuExecutors: setting('gpuExecutors', count(1, 16).default(1), {
    description: 'Executor processes on each GPU; a second one keeps it busy with small models, and loads them again.',
  }),
  maxExecutorBytes: setting('maxExecutorBytes', count(0, Number.MAX_SAFE_INTEGER).default(0), {
    description:
      'Memory in bytes above which an executor is replaced between two runs; 0 is twice what its models need, and 512 MiB; never less than what they need, and 128 MiB.',
  }),
  maxBatchTokens: setting('maxBatchTokens', count(1, 1_048_576).default(4096), {
    description:
      'Tokens that go to an executor on the CPU at a time; a batch ends sooner where it would take too long.',
  }),
  maxBatchItems: setting('maxBatchItems', count(1, 4096).default(64), {
    description: 'Texts that go to an executor on the CPU at a time.',
  }),
  maxGpuBatchTokens: setting('maxGpuBatchTokens', count(1, 1_048_576).default(16_384), {
    description: 'The same for a GPU, in tokens; less where its memory does not suffice.',
  }),
  maxGpuBatchItems: setting('maxGpuBatchItems', count(1, 4096).default(128), {
    description: 'The same for a GPU, in texts.',
  }),
  batchLimit: setting('batchLimit', count(1, 1_000_000).default(2048), {
    description: 'Most inputs in one call.',
  }),
  maxCandidates: setting('maxCandidates', count(1, 1_000_000).default(1024), {
    description: 'Most passages in one rerank call.',
  }),
  maxBatchMembers: setting('maxBatchMembers', count(1, 100_000).default(64), {
    description: 'Most members of a JSON-RPC array.',
  }),
  bodyLimitBytes: setting('bodyLimitBytes', count(1024, 1024 * mebibyte).default(32 * mebibyte), {
    description: 'Largest body, or line on stdio, in bytes.',
  }),
  maxBufferedBytes: setting('maxBufferedBytes', count(1024, 1024 * 1024 * mebibyte).default(512 * mebibyte), {
    description: 'Bytes of bodies and unsent answers of all HTTP callers together; beyond it they are told to wait.',
  }),
  answerLimitBytes: setting('answerLimitBytes', count(1024, 1024 * mebibyte).default(256 * mebibyte), {
    description: 'Largest answer of `embed/multi` in bytes, estimated before anything runs.',
  }),
  maxQueuedItems: setting('maxQueuedItems', count(1, 10_000_000).default(8192), {
    description: 'Texts that may wait for a device; beyond it callers are told when to come back.',
  }),
  maxQueuedTokens: setting('maxQueuedTokens', count(1, 1_000_000_000).default(1_048_576), {
    description: 'Tokens that may wait for a device.',
  }),
  resultCacheBytes: setting('resultCacheBytes', count(0, 8192 * mebibyte).default(0), {
    description:
      'Memory in bytes for results that answer the same text again without a run; 0 is none; set it where callers repeat ' +
      'themselves.',
  }),
  maxConnections: setting('maxConnections', count(1, 1_000_000).default(20_000), {
    description: 'Open HTTP connections; further ones are closed at once.',
  }),
  maxInFlightFrames: setting('maxInFlightFrames', count(1, 1_000_000).default(1024), {
    description: 'Frames on stdio that are worked on at a time; reading pauses beyond it.',
  }),
  deadlineMs: setting('deadlineMs', count(1, 3_600_000).default(25_000), {
    description: 'Longest time for one call, in milliseconds; callers may ask for less with `_meta.deadlineMs`.',
  }),
  bodyTimeoutMs: setting('bodyTimeoutMs', count(100, 3_600_000).default(60_000), {
    description: 'Longest time for one upload, in milliseconds.',
  }),
  headersTimeoutMs: setting('headersTimeoutMs', count(100, 3_600_000).default(20_000), {
    description: 'Longest time for the headers of one request, in milliseconds.',
  }),
  answerStallTimeoutMs: setting('answerStallTimeoutMs', count(100, 3_600_000).default(30_000), {
    description: 'Longest time without progress while an answer is being sent, in milliseconds; then it is given up.',
  }),
  drainMs: setting('drainMs', count(0, 3_600_000).default(30_000), {
    description: 'Longest time accepted work may take after SIGTERM, or after the end of stdin, in milliseconds.',
  }),
  runTimeoutMs: setting('runTimeoutMs', count(100, 3_600_000).default(10_000), {
    description: 'Longest time for one run on a device, in milliseconds; then its executor is replaced.',
  }),
  loadTimeoutMs: setting('loadTimeoutMs', count(100, 3_600_000).default(60_000), {
    description: 'Longest time for an executor to load its models, in milliseconds.',
  }),
  reproveIdleMs: setting('reproveIdleMs', count(1000, 3_600_000).default(30_000), {
    description: 'Idle time after which an executor proves again that it can run, in milliseconds.',
  }),
  otlpEndpoint: setting(
    'otlpEndpoint',
    text()
      .regex(/^https?:\/\/[^\s/]+/, 'must be an http or https URL')
      .nullable()
      .prefault(() => environment['OTEL_EXPORTER_OTLP_ENDPOINT'] || null),
    {
      description:
        'Base URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://localhost:4318; unset, no spans.',
      defaultText: '`OTEL_EXPORTER_OTLP_ENDPOINT`, else none',
    },
  ),
  logLevel: setting('logLevel', z.enum(['debug', 'info', 'warn', 'error']).default('info'), {
    description: 'Least severe entry that is written to stderr.',
  }),
});

/** Settings with every default filled in. */
export type Settings = Readonly<z.infer<typeof settingsSchema>>;

/** What is known of each setting, in the order of the schema. */
export const settingsMeta: ReadonlyMap<string, SettingMeta> = meta;
