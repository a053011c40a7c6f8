/** Owns the table of methods: what RCP/1 defines, and which capability offers each. */

/** Methods that work at any time and never wait for a device. */
export const controlMethods = ['initialize', 'info', 'ping', 'shutdown'] as const;

/** One of `controlMethods`. */
export type ControlMethod = (typeof controlMethods)[number];

/** Methods this server can offer, and the capability that says whether it does. */
export const taskCapabilities = {
  embed: 'embed',
  'embed/sparse': 'sparseEmbed',
  'embed/multi': 'multiVector',
  rerank: 'rerank',
} as const;

/** One of the methods that run a model. */
export type TaskMethod = keyof typeof taskCapabilities;

/** Methods that RCP/1 defines and this server never offers. */
const otherMethods = [
  'retrieve',
  'query/transform',
  'graph',
  'index/add',
  'index/delete',
  'catalog/list',
  'feedback',
  'memory/build',
  'memory/recall',
] as const;

/** How a method name is to be treated. */
export type MethodKind = 'control' | 'task' | 'notOffered' | 'undefined';

/** A Map, so that no inherited name is ever a method. */
const kinds: ReadonlyMap<string, MethodKind> = new Map<string, MethodKind>([
  ...controlMethods.map((name) => [name, 'control'] as const),
  ...Object.keys(taskCapabilities).map((name) => [name, 'task'] as const),
  ...otherMethods.map((name) => [name, 'notOffered'] as const),
]);

/** The kind of a method name, case-sensitive. */
export const methodKind = (name: string): MethodKind => kinds.get(name) ?? 'undefined';

/** True for methods without a model. */
export const isControlMethod = (name: string): name is ControlMethod => methodKind(name) === 'control';

/** True for methods that run a model. */
export const isTaskMethod = (name: string): name is TaskMethod => methodKind(name) === 'task';
