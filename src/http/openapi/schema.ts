/** Owns how the description of the HTTP interface writes JSON schemas. */

/** A JSON schema of the dialect 2020-12, which OpenAPI 3.1 speaks. */
export interface Schema {
  readonly [keyword: string]: unknown;
}

/** What most values are told beside their type. */
type Rest = Schema;

/** A schema that stands in the components. */
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

/** Any text. */
export const text = (description?: string, rest: Rest = {}): Schema => ({
  type: 'string',
  ...(description === undefined ? {} : { description }),
  ...rest,
});

/** True or false. */
export const flag = (description?: string): Schema => ({
  type: 'boolean',
  ...(description === undefined ? {} : { description }),
});

/** Any number. */
export const number = (description?: string, rest: Rest = {}): Schema => ({
  type: 'number',
  ...(description === undefined ? {} : { description }),
  ...rest,
});

/** A whole number. */
export const whole = (description?: string, rest: Rest = {}): Schema => ({
  type: 'integer',
  ...(description === undefined ? {} : { description }),
  ...rest,
});

/** A whole number of at least 1. */
export const count = (description: string, rest: Rest = {}): Schema => whole(description, { minimum: 1, ...rest });

/** One of these texts. */
export const oneOfTexts = (values: readonly string[], description?: string, rest: Rest = {}): Schema =>
  text(description, { enum: values, ...rest });

/** Exactly this value. */
export const exactly = (value: string | number | boolean): Schema => ({ const: value });

/** A list. */
export const list = (items: Schema, description?: string, rest: Rest = {}): Schema => ({
  type: 'array',
  items,
  ...(description === undefined ? {} : { description }),
  ...rest,
});

/** An object; members that are not named may be there and mean nothing. */
export const object = (
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[] = [],
  description?: string,
): Schema => ({
  type: 'object',
  ...(description === undefined ? {} : { description }),
  ...(required.length === 0 ? {} : { required }),
  properties,
});

/** An object in which every member is always there. */
export const full = (properties: Readonly<Record<string, Schema>>, description?: string): Schema =>
  object(properties, Object.keys(properties), description);

/** The same value, or null, which counts as absent. */
export function orNull(schema: Schema): Schema {
  const { type, enum: values } = schema;
  if (type === 'null') return schema;
  if (typeof type !== 'string') return { anyOf: [schema, { type: 'null' }] };
  return {
    ...schema,
    type: [type, 'null'],
    ...(Array.isArray(values) ? { enum: [...(values as string[]), null] } : {}),
  };
}

/** Members that may all be left out, each with null for the same. */
export const optional = (properties: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, orNull(schema)]));

/** Any of several schemas; the one there is where they are no more. */
export function anyOf(schemas: readonly Schema[]): Schema {
  const different = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
  const [first] = different;
  return different.length === 1 && first !== undefined ? first : { anyOf: different };
}
