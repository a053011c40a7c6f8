/** Owns the words about settings that the help and the README share. */
import { z } from 'zod';
import { settingsMeta, settingsSchema } from './settings.ts';

/** One setting, described. */
export interface SettingDescription {
  readonly key: string;
  readonly description: string;
  /** Placeholder of the value, or the values allowed; null for a truth value. */
  readonly valueText: string | null;
  readonly defaultText: string;
  /** Whether the flag may be given several times. */
  readonly isList: boolean;
}

interface ValueSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly ValueSchema[];
  readonly default?: unknown;
}

/** Every setting in the order of the schema. */
export function describeSettings(): SettingDescription[] {
  const { properties = {} } = z.toJSONSchema(settingsSchema, { io: 'output', unrepresentable: 'any' });
  return Object.entries(properties).map(([key, property]) => {
    const about = settingsMeta.get(key);
    if (about === undefined) throw new Error(`setting ${key} has no description`);
    const schema = property as ValueSchema;
    return {
      key,
      description: about.description,
      valueText: valueTextOf(schema),
      defaultText: about.defaultText ?? defaultTextOf(schema.default),
      isList: valueTextOf(schema) === 'list',
    };
  });
}

function valueTextOf(schema: ValueSchema): string | null {
  if (schema.enum !== undefined) return schema.enum.join('|');
  if (schema.anyOf !== undefined) return valueTextOf(schema.anyOf[0] ?? {});
  if (schema.type === 'boolean') return null;
  if (schema.type === 'integer' || schema.type === 'number') return 'number';
  return schema.type === 'array' ? 'list' : 'text';
}

function defaultTextOf(value: unknown): string {
  if (value === null || value === undefined) return 'unset';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.join(',');
  return JSON.stringify(value).replaceAll('"', '');
}
