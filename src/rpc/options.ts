/** Owns the options under the vendor key, and the ones several methods share. */
import type { Lane } from '../schedule/item.ts';
import { ServiceError } from '../errors.ts';
import type { IntegerOutput } from '../tensor/quantize.ts';
import { vectorOutputs, vendorKey } from './capabilities.ts';
import { vectorEncodings, type VectorForm } from './encode.ts';
import {
  readOption,
  readOptionalBoolean,
  readOptionalCount,
  readOptionalObject,
  readOptionalString,
  type Members,
} from './params.ts';

/** Options of one call, with their defaults filled in. */
export interface CallOptions {
  readonly mayTruncate: boolean;
  readonly dimensions: number | null;
  /** null: the method's own default. */
  readonly lane: Lane | null;
  readonly output: IntegerOutput | null;
  /** null: the first model of the method. */
  readonly model: string | null;
}

/** Priorities that a call may ask for. */
export const lanes = ['interactive', 'bulk'] as const;

/**
 * The vendor options of a call.
 * @throws invalidParams, unsupportedOption; fields are `x-trivec.<name>`
 */
export function readCallOptions(params: Members): CallOptions {
  const members = readOptionalObject(params.get(vendorKey), vendorKey);
  const field = (name: string) => `${vendorKey}.${name}`;
  const mayTruncate = readOptionalBoolean(members, 'truncate', field('truncate')) ?? true;
  const dimensions = readOptionalCount(members, 'dimensions', field('dimensions'));
  const model = readOptionalString(members, 'model', field('model'));
  const hasPriority = (members.get('priority') ?? null) !== null;
  const { value: priority } = readOption(members, 'priority', lanes, { field: field('priority') });
  const { value: output } = readOption(members, 'output', vectorOutputs, { field: field('output') });
  return {
    mayTruncate,
    dimensions,
    lane: hasPriority ? priority : null,
    output: output === 'float32' ? null : output,
    model,
  };
}

/** Form of the vectors, and what to note where the caller allowed another than asked for. */
export interface VectorFormChoice {
  readonly form: VectorForm;
  readonly notes: readonly string[];
}

/**
 * How the vectors of this call are encoded.
 * @throws invalidParams, unsupportedOption
 */
export function readVectorForm(params: Members, output: IntegerOutput | null): VectorFormChoice {
  const isStrict = readStrict(params);
  const { value: encoding, replaced } = readOption(params, 'encoding', vectorEncodings, { isStrict });
  if (output !== null && encoding !== 'json') {
    throw new ServiceError('unsupportedOption', `${vendorKey}.output: integers are sent as json only`, {
      option: output,
      field: `${vendorKey}.output`,
      supported: ['float32'],
    });
  }
  return { form: { encoding, output }, notes: replaced === null ? [] : ['encoding: json was used instead'] };
}

/** False only where the caller allows an unsupported option to be replaced by its default. */
export function readStrict(params: Members): boolean {
  return readOptionalBoolean(params, 'strict') ?? true;
}
