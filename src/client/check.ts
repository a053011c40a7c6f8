/** Owns refusing, before anything is sent, what the server does not advertise; everything else becomes params. */
import { requireCount } from './bounds.ts';
import { refusal } from './error.ts';
import { vendorKey, type ModelCapability, type ServerInfo, type ServedModel, type VectorCapability } from './info.ts';
import { findModel, modelsOf } from './models.ts';
import type { ModelCallOptions, RerankOptions, VectorOutput } from './options.ts';

/** Method of each capability. */
export const methodOf: Readonly<Record<ModelCapability, string>> = {
  embed: 'embed',
  sparseEmbed: 'embed/sparse',
  multiVector: 'embed/multi',
  rerank: 'rerank',
};

const outputs: readonly string[] = ['float32', 'int8', 'uint8', 'binary', 'ubinary'] satisfies VectorOutput[];

/** Options that stand under the vendor key. */
type VendorOptions = Pick<ModelCallOptions, 'truncate' | 'priority' | 'model'> & {
  readonly dimensions?: number | undefined;
  readonly output?: string | undefined;
};

/**
 * The capability.
 * @throws capabilityNotAdvertised
 */
export function requireCapability<C extends ModelCapability>(
  info: ServerInfo,
  capability: C,
): NonNullable<ServerInfo['capabilities'][C]> {
  const found = info.capabilities[capability];
  if (found) return found;
  const offered = Object.keys(methodOf).filter((name) => info.capabilities[name as ModelCapability] !== undefined);
  const message = `${methodOf[capability]}: this server does not offer it; it offers ${offered.join(', ') || 'nothing'}`;
  throw refusal('capabilityNotAdvertised', message, { option: methodOf[capability], supported: offered });
}

/**
 * The texts, if they are some.
 * @throws invalidParams
 */
export function requireTexts(texts: readonly string[], field: string): readonly string[] {
  const given: unknown = texts;
  if (!Array.isArray(given)) throw refusal('invalidParams', `${field}: must be a list of strings`, { field });
  const wrong = given.findIndex((text) => typeof text !== 'string');
  if (wrong < 0) return texts;
  throw refusal('invalidParams', `${field}[${wrong}]: must be a string`, { field: `${field}[${wrong}]` });
}

const unsupported = (field: string, option: string, supported: readonly string[]) =>
  refusal('unsupportedOption', `${field}: ${option} is not offered; use one of ${supported.join(', ') || 'none'}`, {
    field,
    option,
    supported,
  });

function requireOneOf(field: string, value: string | undefined, supported: readonly string[] | undefined): void {
  if (value === undefined || supported === undefined || supported.includes(value)) return;
  throw unsupported(field, value, supported);
}

/**
 * The params member for options that RCP/1 does not define; empty where none is asked for.
 * @throws unsupportedOption, invalidParams
 */
export function vendorParams(
  info: ServerInfo,
  capability: Exclude<ModelCapability, 'rerank'> | null,
  options: VendorOptions,
): Record<string, unknown> {
  const { truncate, priority, model, dimensions, output } = options;
  const asked = Object.entries({ truncate, priority, model, dimensions, output }).filter(
    ([, value]) => value !== undefined,
  );
  const offered = info[vendorKey]?.options ?? [];
  const missing = asked.find(([name]) => !offered.includes(name));
  if (missing !== undefined) throw unsupported(vendorKey, missing[0], offered);
  requireOneOf(`${vendorKey}.output`, output, outputs);
  requireOneOf(`${vendorKey}.priority`, priority, ['interactive', 'bulk']);
  if (truncate !== undefined && typeof (truncate as unknown) !== 'boolean') {
    throw refusal('invalidParams', `${vendorKey}.truncate: must be true or false`, { field: `${vendorKey}.truncate` });
  }
  if (capability !== null) {
    const models = modelsOf(info, capability);
    requireOneOf(
      `${vendorKey}.model`,
      model,
      models.map(({ id }) => id),
    );
    requireDimensions(info, findModel(info, capability, { model }), dimensions);
  }
  return asked.length === 0 ? {} : { [vendorKey]: Object.fromEntries(asked) };
}

function requireDimensions(info: ServerInfo, model: ServedModel | undefined, dimensions: number | undefined): void {
  if (dimensions === undefined) return;
  const field = `${vendorKey}.dimensions`;
  const whole = model?.dimension ?? info.capabilities.embed?.dimension;
  requireCount(field, dimensions, whole);
  if (model?.matryoshka !== false || dimensions === whole) return;
  const message = `${field}: ${model.id} is not made to be cut; its vectors have ${String(whole)} dimensions`;
  throw refusal('unsupportedOption', message, { field, option: String(dimensions), supported: [String(whole)] });
}

/**
 * How vectors travel: as base64 where that works, unless the caller says otherwise.
 * @throws unsupportedOption
 */
export function chooseEncoding(
  capability: VectorCapability,
  encoding: string | undefined,
  output: string | undefined,
): 'json' | 'f32-base64' {
  const offered = ['json', ...(capability.encodings ?? []).filter((name) => name !== 'json')];
  requireOneOf('encoding', encoding, offered);
  const isFloat = output === undefined || output === 'float32';
  if (encoding === 'f32-base64' && !isFloat) {
    throw refusal('unsupportedOption', `encoding: ${output} travels as json only`, {
      field: 'encoding',
      option: encoding,
      supported: ['json'],
    });
  }
  const best = isFloat && offered.includes('f32-base64') ? 'f32-base64' : 'json';
  return (encoding as 'json' | 'f32-base64' | undefined) ?? best;
}

/**
 * Checks `kind` for callers without types.
 * @throws invalidParams
 */
export function requireKind(kind: string | undefined): void {
  if (kind === undefined || kind === 'query' || kind === 'document') return;
  throw refusal('invalidParams', 'kind: must be query or document', { field: 'kind' });
}

/**
 * Params of `rerank` beside the query and the passages.
 * @throws unsupportedOption, invalidParams
 */
export function rerankParams(info: ServerInfo, options: RerankOptions): Record<string, unknown> {
  const { methods, models } = requireCapability(info, 'rerank');
  const { method, model, topN, truncate, priority } = options;
  requireCount('topN', topN);
  requireOneOf('method', method, methods);
  const listed = modelsOf(info, 'rerank').filter((entry) => method === undefined || entry.method === method);
  requireOneOf('model', model, listed.length > 0 ? listed.map(({ id }) => id) : models);
  return {
    ...(method !== undefined && { method }),
    ...(model !== undefined && { model }),
    ...(topN !== undefined && { topN }),
    ...vendorParams(info, null, {
      ...(truncate !== undefined && { truncate }),
      ...(priority !== undefined && { priority }),
    }),
  };
}
