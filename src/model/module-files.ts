/** Owns the files of the modules behind the encoder: pooling, dense layer, layer normalisation, SPLADE. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ConfigurationError } from '../errors.ts';
import { activationOf } from '../kernels/dense/activations.ts';
import { refuse } from './gather.ts';
import { readJson } from './json-file.ts';
import { plainSplade } from './sparse-rules.ts';
import type { SpladeRules } from './sparse-rules.ts';
import type { DenseStep, PoolingMode, VectorStep } from './vector-steps.ts';
import type { TensorSource } from './weights/tensor-file.ts';

const poolingSchema = z.record(z.string(), z.unknown());
const denseSchema = z.object({
  in_features: z.int().positive(),
  out_features: z.int().positive(),
  bias: z.boolean().default(true),
  activation_function: z.string().default('torch.nn.modules.activation.Tanh'),
  module_input_name: z.string().nullish(),
  use_residual: z.boolean().default(false),
});
const layerNormSchema = z.object({ dimension: z.int().positive() });
const spladeSchema = z.object({
  pooling_strategy: z.string().default('max'),
  activation_function: z.string().default('relu'),
});

/** Poolings by the name that sentence-transformers gives them. */
const poolingModes: Readonly<Record<string, PoolingMode>> = {
  cls: 'cls',
  max: 'max',
  mean: 'mean',
  mean_sqrt_len_tokens: 'meanSqrtLen',
  weightedmean: 'weightedMean',
  lasttoken: 'lastToken',
};

/** The switch of each pooling in the older form of its file, in the order in which their vectors are joined. */
const poolingSwitches: Readonly<Record<string, string>> = {
  pooling_mode_cls_token: 'cls',
  pooling_mode_max_tokens: 'max',
  pooling_mode_mean_tokens: 'mean',
  pooling_mode_mean_sqrt_len_tokens: 'mean_sqrt_len_tokens',
  pooling_mode_weightedmean_tokens: 'weightedmean',
  pooling_mode_lasttoken: 'lasttoken',
};

/** Names of all poolings that the file turns on; several mean that their vectors are joined. */
export function poolingNames(file: Readonly<Record<string, unknown>>): string[] {
  const mode = file['pooling_mode'];
  if (typeof mode === 'string') return [mode];
  if (Array.isArray(mode)) return mode.map(String);
  return Object.entries(poolingSwitches).flatMap(([key, name]) => (file[key] === true ? [name] : []));
}

/**
 * The poolings of a module, and whether the prompt's tokens take part.
 * @throws ConfigurationError
 */
export async function readPooling(
  folder: string,
): Promise<{ readonly modes: PoolingMode[]; readonly includesPrompt: boolean }> {
  const path = join(folder, 'config.json');
  const file = await readJson(path, poolingSchema);
  const names = poolingNames(file);
  const modes = names.map((name) => poolingModes[name]).filter((mode) => mode !== undefined);
  if (modes.length === 0 || modes.length < names.length) {
    throw new ConfigurationError([`${path}: pooling "${names.join(' + ')}" is not supported`]);
  }
  return { modes, includesPrompt: file['include_prompt'] !== false };
}

/** The safetensors file of a module. */
async function weightFile(folder: string): Promise<string> {
  const path = join(folder, 'model.safetensors');
  try {
    await stat(path);
    return path;
  } catch {
    throw new ConfigurationError([
      `${path}: is missing; weights are read from safetensors files only, not from pytorch_model.bin`,
    ]);
  }
}

/** Whether a dense layer works on the rows instead of on the vector. */
export async function isTokenLevel(folder: string): Promise<boolean> {
  const { module_input_name: input } = await readJson(join(folder, 'config.json'), denseSchema);
  return input === 'token_embeddings';
}

/**
 * A dense layer.
 * @throws ConfigurationError where its activation has no kernel or its weights are not there
 */
export async function readDense(folder: string): Promise<DenseStep> {
  const path = join(folder, 'config.json');
  const file = await readJson(path, denseSchema);
  const className = file.activation_function.slice(file.activation_function.lastIndexOf('.') + 1);
  const activation = activationOf(className.toLowerCase());
  if (activation === null) {
    throw new ConfigurationError([`${path}: activation "${file.activation_function}" is not supported`]);
  }
  const weights = await weightFile(folder);
  const tensor = (name: string): TensorSource => ({ path: weights, name });
  const around = file.in_features === file.out_features ? 'input' : tensor('residual.weight');
  return {
    kind: 'dense',
    inFeatures: file.in_features,
    outFeatures: file.out_features,
    weight: tensor('linear.weight'),
    bias: file.bias ? tensor('linear.bias') : null,
    activation,
    residual: file.use_residual ? around : 'none',
  };
}

/**
 * A layer normalisation.
 * @throws ConfigurationError
 */
export async function readLayerNorm(folder: string): Promise<VectorStep> {
  const { dimension } = await readJson(join(folder, 'config.json'), layerNormSchema);
  const path = await weightFile(folder);
  return {
    kind: 'layerNorm',
    width: dimension,
    weight: { path, name: 'norm.weight' },
    bias: { path, name: 'norm.bias' },
  };
}

/**
 * How logits become weights.
 * @throws ConfigurationError
 */
export async function readSplade(folder: string): Promise<SpladeRules> {
  const path = join(folder, 'config.json');
  const { pooling_strategy: pooling, activation_function: activation } = await readJson(path, spladeSchema);
  const isKnown = ['max', 'sum'].includes(pooling) && ['relu', 'log1p_relu'].includes(activation);
  refuse(isKnown ? [] : [`${path}: SPLADE pooling "${pooling}" of "${activation}" is not supported`]);
  return {
    ...plainSplade,
    pooling: pooling === 'sum' ? 'sum' : 'max',
    activation: activation === 'relu' ? 'relu' : 'log1pRelu',
  };
}
